/**
 * @file tarn_graph.h
 * @brief Graphs of pooling nodes: build once, run, differentiate both ways, look at, save.
 *
 * A graph is a list of nodes in single-assignment form: every node makes one value from values made
 * before it, so there are no cycles and the list is an order to run in. Building checks each node
 * at once; compiling turns a graph and a request into a program: a list of steps and one block of
 * memory. docs/graph.md tells the story; numbers in brackets cite docs/spec.md.
 *
 * Conventions, beyond those of tarn.h:
 *  - **Values** are dense and row-major. Handles count from 0 in the order of building.
 *  - **Ownership.** A graph copies what it is given (shapes, descriptors, constants, names), except
 *    the context of a custom node, which it owns from the moment the node is accepted. A program
 *    borrows constants and custom contexts: destroy it before its graph.
 *  - **Threading.** One thread at a time may build a graph; a graph nobody builds may be compiled
 *    by many. A program has one block of memory: one run at a time. Different programs, also of one
 *    graph, run at once, if the payloads of its custom nodes allow that.
 *  - **Errors.** A refused node leaves the graph as it was; the output handle is then not written.
 *    A run checks its arguments before it writes anything. Only the payload of a custom node can
 *    stop a run later: outputs are then unspecified.
 */
#ifndef TARN_GRAPH_H
#define TARN_GRAPH_H

#include "tarn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TARN_NAME_BYTES 64 /**< Room for the name of a value, with its closing zero. */

/* ------------------------------------------------------------------------------------------ */
/** @name Building
 *  @{ */

/** A list of nodes. */
typedef struct tarn_graph tarn_graph;

/** A value: the number of the node that makes it. */
typedef int32_t tarn_value;

/** Makes an empty graph. `allocator` serves everything the graph holds; NULL is malloc and free.
 *  *graph is NULL on error. Errors: BAD_ARGUMENT, NO_MEMORY. */
TARN_API tarn_status tarn_graph_create(tarn_graph **graph, const tarn_allocator *allocator,
                                       tarn_error *error);
/** Frees a graph and the contexts of its custom nodes; NULL is allowed. */
TARN_API void tarn_graph_destroy(tarn_graph *graph);

/** A tensor that the caller gives for every run; inputs are numbered in the order of building.
 * Every builder has the errors BAD_ARGUMENT (NULL, not a handle), NO_MEMORY and those it names.
 * Here: BAD_DTYPE, BAD_RANK, BAD_SHAPE, OVERFLOW. */
TARN_API tarn_status tarn_graph_input(tarn_graph *graph, tarn_dtype dtype, int rank,
                                      const int64_t *shape, tarn_value *value, tarn_error *error);

/** Numbers known now; copied from the view, which may have any layout. Errors as
 * tarn_graph_input(), and BAD_LAYOUT for data not aligned to its elements. */
TARN_API tarn_status tarn_graph_constant(tarn_graph *graph, const tarn_view *data,
                                         tarn_value *value, tarn_error *error);

/** Any pooling by its descriptor. Errors: those of tarn_plan_create(), found by the same
 * checker. */
TARN_API tarn_status tarn_graph_pool(tarn_graph *graph, tarn_value x, const tarn_pool *pool,
                                     tarn_value *value, tarn_error *error);

/** 2-D max, kernel (kH,kW), one stride, no padding. */
TARN_API tarn_status tarn_graph_max_pool2d(tarn_graph *graph, tarn_value x, int64_t kernel_h,
                                           int64_t kernel_w, int64_t stride, tarn_value *value,
                                           tarn_error *error);
/** 2-D max with one symmetric padding, which never wins. */
TARN_API tarn_status tarn_graph_max_pool2d_padded(tarn_graph *graph, tarn_value x, int64_t kernel_h,
                                                  int64_t kernel_w, int64_t stride, int64_t padding,
                                                  tarn_value *value, tarn_error *error);
/** 2-D smooth max (log-sum-exp), no padding. */
TARN_API tarn_status tarn_graph_smooth_pool2d(tarn_graph *graph, tarn_value x, int64_t kernel_h,
                                              int64_t kernel_w, int64_t stride, double beta,
                                              tarn_value *value, tarn_error *error);
/** 2-D p-norm, p = power, no padding. */
TARN_API tarn_status tarn_graph_lp_pool2d(tarn_graph *graph, tarn_value x, int64_t kernel_h,
                                          int64_t kernel_w, int64_t stride, double power,
                                          tarn_value *value, tarn_error *error);
/** 2-D average, no padding. */
TARN_API tarn_status tarn_graph_avg_pool2d(tarn_graph *graph, tarn_value x, int64_t kernel_h,
                                           int64_t kernel_w, int64_t stride, tarn_value *value,
                                           tarn_error *error);
/** 2-D average with one symmetric padding, which counts as zeros. */
TARN_API tarn_status tarn_graph_avg_pool2d_padded(tarn_graph *graph, tarn_value x, int64_t kernel_h,
                                                  int64_t kernel_w, int64_t stride, int64_t padding,
                                                  tarn_value *value, tarn_error *error);

/** Zeros around the last `spatial` axes [H1]. Errors as tarn_pad(). */
TARN_API tarn_status tarn_graph_pad(tarn_graph *graph, tarn_value x, int spatial, const int64_t *lo,
                                    const int64_t *hi, tarn_value *value, tarn_error *error);
/** The crop that undoes tarn_graph_pad() [H2]. Errors as tarn_unpad(). */
TARN_API tarn_status tarn_graph_unpad(tarn_graph *graph, tarn_value x, int spatial,
                                      const int64_t *lo, const int64_t *hi, tarn_value *value,
                                      tarn_error *error);

/** (+0 + a) + b, in the type of sums and rounded once [S6]; integers saturate as in A4. Errors:
 *  BAD_DTYPE, BAD_RANK, BAD_SHAPE unless both are alike. */
TARN_API tarn_status tarn_graph_add(tarn_graph *graph, tarn_value a, tarn_value b,
                                    tarn_value *value, tarn_error *error);
/** factor*x, multiplied in binary64 and rounded once. Errors: BAD_DTYPE (integers), BAD_VALUE (a
 *  factor that is not finite). */
TARN_API tarn_status tarn_graph_scale(tarn_graph *graph, tarn_value x, double factor,
                                      tarn_value *value, tarn_error *error);
/** `count` >= 1 values one after the other along `axis` (0 is the outermost). Errors: BAD_RANK,
 *  BAD_SHAPE, BAD_DTYPE, OVERFLOW. */
TARN_API tarn_status tarn_graph_concat(tarn_graph *graph, int count, const tarn_value *values,
                                       int axis, tarn_value *value, tarn_error *error);
/** The same elements in row-major order under another shape. Errors: BAD_RANK, BAD_SHAPE,
 * OVERFLOW. */
TARN_API tarn_status tarn_graph_reshape(tarn_graph *graph, tarn_value x, int rank,
                                        const int64_t *shape, tarn_value *value, tarn_error *error);
/** tarn_graph_reshape() that joins all axes from `axis` on: (N,C,H,W) with axis 1 to (N,C*H*W).
 *  Errors: BAD_RANK unless 0 <= axis < rank; OVERFLOW. */
TARN_API tarn_status tarn_graph_flatten(tarn_graph *graph, tarn_value x, int axis,
                                        tarn_value *value, tarn_error *error);

/**
 * A node of the caller's own. Payloads get dense views with data, `x` one for each operand. They
 * are called in the thread that runs the program, once a run; they may keep no pointer. `error` is
 * never NULL. A status other than TARN_OK stops the run, which returns it with the error that the
 * payload filled (if the payload left it alone, one is made).
 */
typedef struct tarn_custom {
    const char *name; /**< A word for text and drawings, [A-Za-z_][A-Za-z0-9_]*; copied. */
    tarn_dtype dtype; /**< Scalar type of the value. */
    int rank;         /**< Its number of axes. */
    int64_t shape[TARN_MAX_RANK]; /**< Its shape. */
    /** y = f(x): writes every element of y. Required. */
    tarn_status (*forward)(void *context, const tarn_view *x, const tarn_view *y,
                           tarn_error *error);
    /** dy = J(x) dx: writes every element of dy. dx[k].data is NULL if operand k does not vary (its
     *  tangent is 0). NULL: no JVP; compiling one through this node is UNSUPPORTED. */
    tarn_status (*jvp)(void *context, const tarn_view *x, const tarn_view *dx, const tarn_view *dy,
                       tarn_error *error);
    /** gx[k] = J_k(x)' gy for every operand: writes (not adds to) every element of each gx[k] whose
     *  data is not NULL; NULL is a gradient that nobody wants. NULL: no VJP, as above. */
    tarn_status (*vjp)(void *context, const tarn_view *x, const tarn_view *gy, const tarn_view *gx,
                       tarn_error *error);
    void *context;                  /**< Handed to the payloads. */
    void (*destroy)(void *context); /**< Called once, when the graph is destroyed; may be NULL. */
} tarn_custom;

/** Pushes a node of the caller's own with `count` >= 0 operands. If it is refused the context stays
 * the caller's. Errors as tarn_graph_input(). */
TARN_API tarn_status tarn_graph_custom(tarn_graph *graph, int count, const tarn_value *operands,
                                       const tarn_custom *custom, tarn_value *value,
                                       tarn_error *error);

/** Makes a value an output of the graph, numbered in the order of these calls. A value may be an
 * output more than once; inputs and constants may be outputs. */
TARN_API tarn_status tarn_graph_output(tarn_graph *graph, tarn_value value, tarn_error *error);

/** Names a value, for text and drawings: [A-Za-z_][A-Za-z0-9_]*, at most 63 bytes, not in use, and
 *  none of the words return, global, flat, ceil, nopad, scalar and the dtypes.
 *  Values are v0, v1, ... until named. Errors: BAD_ARGUMENT, NO_MEMORY. */
TARN_API tarn_status tarn_graph_name(tarn_graph *graph, tarn_value value, const char *name,
                                     tarn_error *error);

/** How many values there are; 0 for NULL. */
TARN_API int tarn_graph_values(const tarn_graph *graph);
/** How many inputs there are; 0 for NULL. */
TARN_API int tarn_graph_inputs(const tarn_graph *graph);
/** How many outputs there are; 0 for NULL. */
TARN_API int tarn_graph_outputs(const tarn_graph *graph);
/** The value that is input k; -1 if there is none. */
TARN_API tarn_value tarn_graph_input_value(const tarn_graph *graph, int k);
/** The value that is output k; -1 if there is none. */
TARN_API tarn_value tarn_graph_output_value(const tarn_graph *graph, int k);
/** Dtype, shape and dense strides of a value, with NULL data. Errors: BAD_ARGUMENT. */
TARN_API tarn_status tarn_graph_view(const tarn_graph *graph, tarn_value value, tarn_view *view,
                                     tarn_error *error);
/** Name of a value, valid until it is renamed or the graph changes; NULL if there is no such
 * value. */
TARN_API const char *tarn_graph_value_name(const tarn_graph *graph, tarn_value value);
/** The value of that name; -1 if there is none. */
TARN_API tarn_value tarn_graph_find(const tarn_graph *graph, const char *name);

/** @} */
/* ------------------------------------------------------------------------------------------ */
/** @name Compiling
 *  @{ */

/** What a program computes. */
typedef enum tarn_mode {
    TARN_GRAPH_FORWARD, /**< The outputs. */
    TARN_GRAPH_JVP,     /**< Tangents of the outputs from tangents of the inputs. */
    TARN_GRAPH_VJP,     /**< Gradients of the inputs from cotangents of the outputs. */
    TARN_MODES          /**< How many there are; not a mode. */
} tarn_mode;

/** A request. Only nodes on a path to something requested are computed. */
typedef struct tarn_request {
    tarn_mode mode; /**< Which pass. */
    int values;     /**< JVP, VJP: nonzero computes the outputs, too. */
    /** One number for each output, nonzero if it is wanted (its value, tangent or cotangent). NULL:
     *  all. */
    const unsigned char *outputs;
    /** One for each input, nonzero to differentiate with respect to it; others are constants.
     *  NULL: all floating ones. */
    const unsigned char *inputs;
} tarn_request;

/** Steps and memory for one request; see the conventions above for threading and lifetime. */
typedef struct tarn_program tarn_program;

/**
 * Compiles a graph. Executor, allocator and isa are taken from `options` (NULL: the defaults); its
 * layouts must be NULL. Nodes built and outputs named afterwards do not change the program.
 * Errors: BAD_ARGUMENT; BAD_DTYPE (derivative with respect to an integer input); UNSUPPORTED (a
 * custom node without the payload, or no kernel in the mask); OVERFLOW, NO_MEMORY.
 */
TARN_API tarn_status tarn_graph_compile(tarn_program **program, const tarn_graph *graph,
                                        const tarn_request *request, const tarn_options *options,
                                        tarn_error *error);
/** Frees a program; NULL is allowed. */
TARN_API void tarn_program_destroy(tarn_program *program);

/** What a program keeps in memory, in bytes; every buffer is rounded up to 64. */
typedef struct tarn_memory {
    int64_t arena;         /**< The block that the program holds: the peak. */
    int64_t without_reuse; /**< What it would be if no buffer took the place of another. */
    int64_t floor; /**< The most bytes alive at one step: no plan of these steps has less. */
    int64_t saved;         /**< Saved winners, as a part of without_reuse. */
    int steps;             /**< Steps of a run. */
} tarn_memory;

/** Memory of a program. Errors: BAD_ARGUMENT. */
TARN_API tarn_status tarn_program_memory(const tarn_program *program, tarn_memory *memory,
                                         tarn_error *error);

/** @} */
/* ------------------------------------------------------------------------------------------ */
/** @name Running
 * Arrays hold a pointer for each input or output, dense tensors of the value's shape. A pointer
 * that the program does not need (an output not wanted, an integer's tangent, an input that nothing
 * reads) is not looked at; the array may be NULL if none is needed. Results have the same bits for
 * every executor. Nothing is allocated. Errors: BAD_ARGUMENT (NULL, or a program of another mode),
 * BAD_LAYOUT (alignment), ALIAS, and whatever a custom payload returns.
 *  @{ */

/** outputs = graph(inputs). */
TARN_API tarn_status tarn_program_forward(tarn_program *program, const void *const *inputs,
                                          void *const *outputs, tarn_error *error);

/** output_tangents = J(inputs) input_tangents, and the outputs if the request said so. An output
 * that does not depend on a varying input gets zeros. */
TARN_API tarn_status tarn_program_jvp(tarn_program *program, const void *const *inputs,
                                      const void *const *input_tangents, void *const *outputs,
                                      void *const *output_tangents, tarn_error *error);

/**
 * gradients = J(inputs)' cotangents, and the outputs if the request said so: value and gradient in
 * one call. A value with one use passes its gradient on bit by bit. With several, the contributions
 * are summed left to right, starting at +0, in the type of sums and rounded once [S5, S6], in this
 * order: the cotangents of outputs that are this value, in the order of outputs; then its uses,
 * from the node built last to the one built first, within a node from its first operand to its
 * last.
 */
TARN_API tarn_status tarn_program_vjp(tarn_program *program, const void *const *inputs,
                                      const void *const *cotangents, void *const *outputs,
                                      void *const *gradients, tarn_error *error);

/** Compiles all outputs, runs once and frees: the bits of a program, at the price of compiling.
 * Errors of compiling and running. */
TARN_API tarn_status tarn_graph_forward(const tarn_graph *graph, const void *const *inputs,
                                        void *const *outputs, const tarn_options *options,
                                        tarn_error *error);
/** The same for the JVP with respect to all floating inputs; `outputs` may be NULL: no values. */
TARN_API tarn_status tarn_graph_jvp(const tarn_graph *graph, const void *const *inputs,
                                    const void *const *input_tangents, void *const *outputs,
                                    void *const *output_tangents, const tarn_options *options,
                                    tarn_error *error);
/** The same for the VJP; `outputs` may be NULL: no values. */
TARN_API tarn_status tarn_graph_vjp(const tarn_graph *graph, const void *const *inputs,
                                    const void *const *cotangents, void *const *outputs,
                                    void *const *gradients, const tarn_options *options,
                                    tarn_error *error);

/** @} */
/* ------------------------------------------------------------------------------------------ */
/** @name Text and drawings
 *  @{ */

/** Gives the loader the payloads of a custom node: fills *custom (its context included) for `count`
 *  operands with the given views. The loader sets dtype and shape from the text. */
typedef tarn_status (*tarn_resolve)(void *context, const char *name, int count,
                                    const tarn_view *operands, tarn_custom *custom,
                                    tarn_error *error);

/**
 * Makes a graph from its text form, docs/graph.md. `text` need not end in a zero. `resolve` serves
 * custom nodes and may be NULL if there are none; allocator as tarn_graph_create(). *graph is NULL
 * on error. Errors: BAD_TEXT, or what the builder refused, with "line 3, column 7: " before the
 * message; NO_MEMORY.
 */
TARN_API tarn_status tarn_graph_load(tarn_graph **graph, const char *text, size_t length,
                                     tarn_resolve resolve, void *context,
                                     const tarn_allocator *allocator, tarn_error *error);

/** Writes the text form, so that loading gives the graph back: same nodes, names, bits. Returns the
 *  length of the whole text like snprintf, or a negative number for NULL. */
TARN_API int64_t tarn_graph_save(const tarn_graph *graph, char *text, size_t size);

/** Writes the graph as Graphviz DOT: operators, shapes, bytes; with a program of this graph (or
 * NULL) also which nodes it computes, where their values lie and which share memory. As
 * tarn_graph_save(). */
TARN_API int64_t tarn_graph_dot(const tarn_graph *graph, const tarn_program *program, char *text,
                                size_t size);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
