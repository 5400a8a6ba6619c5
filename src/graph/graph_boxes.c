/* Small tensors inside large ones: what pad, unpad and concatenation copy. */
#include "graph_compiler.h"

tarn_inset tarn_padding_box(const tarn_compiler *c, tarn_value v)
{
    const tarn_padding *padding = node_of(c, v)->payload;
    const tarn_view *x = &node_of(c, operands_of(c, v)[0])->view, *y = &node_of(c, v)->view;
    bool pads = node_of(c, v)->kind == NODE_PAD;
    const tarn_view *small = pads ? x : y, *large = pads ? y : x;
    int64_t size = (int64_t)tarn_dtype_size(small->dtype);
    int d = padding->spatial, leading = small->rank - d;
    tarn_inset box = {.axes = d, .size = {1}};
    for (int a = 0; a < leading; a++)
        box.size[0] *= small->shape[a];
    int64_t step = size;
    for (int a = d - 1; a >= 0; a--) { /* box axis a+1 is spatial axis a, but the last is the run */
        box.offset += padding->lo[a] * step;
        if (a < d - 1) {
            box.size[a + 1] = small->shape[leading + a];
            box.stride[a + 1] = step;
        }
        step *= large->shape[leading + a];
    }
    box.stride[0] = step;
    box.run = small->shape[small->rank - 1] * size;
    return box;
}

tarn_inset tarn_operand_slice(const tarn_compiler *c, tarn_value v, int k, int64_t offset)
{
    const tarn_view *small = &node_of(c, operands_of(c, v)[k])->view;
    const tarn_view *large = &node_of(c, v)->view;
    int axis = *(const int *)node_of(c, v)->payload;
    int64_t outer = 1, inner = (int64_t)tarn_dtype_size(small->dtype);
    for (int a = 0; a < axis; a++)
        outer *= small->shape[a];
    for (int a = axis + 1; a < small->rank; a++)
        inner *= small->shape[a];
    return (tarn_inset){.axes = 1,
                      .size = {outer},
                      .stride = {inner * large->shape[axis]},
                      .offset = offset,
                      .run = inner * small->shape[axis]};
}
