/* The bits themselves: hashes of results on fixed inputs, so that two builds can be compared
 * without being in one room. memcmp tests compare two halves of one program; if a compiler
 * contracted or reordered both alike, only this would tell. */
#include "check.h"

/* Inputs are k/64 for small integers k: exact in every floating dtype. */
static void fill(void *data, tarn_dtype dtype, size_t count, uint64_t seed)
{
    rng r = {seed};
    for (size_t k = 0; k < count; k++) {
        float single = (float)rng_range(&r, -127, 127) / 64;
        double wide = single;
        uint32_t bits;
        memcpy(&bits, &single, 4);
        uint16_t half = (uint16_t)(bits >> 16); /* bf16: eight bits of mantissa are enough */
        if (dtype == TARN_F64)
            ((double *)data)[k] = wide;
        else if (dtype == TARN_F32)
            ((float *)data)[k] = single;
        else
            ((uint16_t *)data)[k] = half;
    }
}

/* One hash over y, dy and gx. */
static uint64_t hash_problem(const char *text, uint32_t isa)
{
    enum { ROOM = 1 << 15 };
    static double x[ROOM], dx[ROOM], y[ROOM], dy[ROOM], gy[ROOM], gx[ROOM];
    tarn_pool pool;
    tarn_view in, out;
    tarn_plan *plan;
    tarn_error error;
    tarn_options options = tarn_options_default();
    options.isa = isa;
    if (tarn_problem_parse(text, &pool, &in, &error) ||
        tarn_plan_create(&plan, &pool, &in, &options, &error)) {
        CHECK(false, "%s: %s", text, error.message);
        return 0;
    }
    tarn_plan_layout(plan, TARN_Y, &out, NULL);
    size_t size = tarn_dtype_size(in.dtype);
    size_t ins = tarn_view_bytes(&in) / size, outs = tarn_view_bytes(&out) / size;
    CHECK(ins <= ROOM && outs <= ROOM, "%s", text);
    fill(x, in.dtype, ins, 1);
    fill(dx, in.dtype, ins, 2);
    fill(gy, in.dtype, outs, 3);
    CHECK(tarn_jvp(plan, x, dx, y, dy, &error) == TARN_OK, "%s: %s", text, error.message);
    CHECK(tarn_vjp(plan, x, NULL, gy, gx, &error) == TARN_OK, "%s: %s", text, error.message);
    tarn_plan_destroy(plan);
    uint64_t hash = hash_elements(HASH_BEGIN, y, size, outs);
    return hash_elements(hash_elements(hash, dy, size, outs), gx, size, ins);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *problem;
        uint64_t hash;
    } golden[] = {
        {"smooth k3s1p1 f64 3x17x19 beta=1.75", UINT64_C(0x88299f540a067c28)},
        {"smooth k3s2 f32 3x17x19 beta=-0.3", UINT64_C(0x51d28da6041edac7)},
        {"smooth k5s1 f32 2x13x14 beta=400 nopad", UINT64_C(0x00c3a39318ef6e03)},
        {"smooth global f32 3x31x33 beta=11", UINT64_C(0xb671eb0dfb8478e3)},
        {"smooth a4,5 bf16 3x17x19 beta=3", UINT64_C(0x59b68e1e43c10ece)},
        {"lp k3s2p1 f32 3x17x19 p=1", UINT64_C(0x584f2c837c3e40ee)},
        {"lp k3s1p1 f64 3x17x19 p=2", UINT64_C(0x24d2afa56932005e)},
        {"lp k3s2 f32 3x17x19 p=2", UINT64_C(0x600795cdafea135f)},
        {"lp k5s1 f64 2x13x14 p=3", UINT64_C(0x611a01298368116f)},
        {"lp global f32 3x31x33 p=2.5", UINT64_C(0x09d24f8793004a34)},
        {"lp a4,5 bf16 3x17x19 p=7", UINT64_C(0x0ae864686007fc36)},
        {"avg k3s1p1 f32 3x17x19", UINT64_C(0xed80d0661722798e)},
        {"avg k13s1p6 f64 2x21x22", UINT64_C(0x1c615fb9ecfd0677)},
        {"avg k5,4,3s2 f32 2x9x10x11 ceil", UINT64_C(0x54fbaa42e43ba569)},
        {"avg k3s2p1 bf16 3x17x19 nopad", UINT64_C(0xe641f13c207f8fb3)},
        {"avg global f32 4x31x33", UINT64_C(0x8e50a202709c51fb)},
        {"avg a4,5 f64 3x17x19", UINT64_C(0x5bf3629acea5ae0e)},
        {"max k3s2p1 f32 3x17x19", UINT64_C(0xee4feb19551aba44)},
        {"max k5s1p2 f64 2x13x14 ties=split", UINT64_C(0x14d10e8faa4a0fe5)},
        {"min k4s1 bf16 2x13x14 ties=all", UINT64_C(0x97c137611b836479)},
    };
    for (size_t k = 0; k < sizeof golden / sizeof golden[0]; k++) {
        uint64_t spec = hash_problem(golden[k].problem, TARN_ISA_SPEC);
        uint64_t fast = hash_problem(golden[k].problem, TARN_ISA_ALL);
        if (argc > 1 && strcmp(argv[1], "--print") == 0)
            printf("        {\"%s\", UINT64_C(0x%016llx)},\n", golden[k].problem,
                   (unsigned long long)spec);
        CHECK(spec == golden[k].hash, "%s: the specification's bits changed", golden[k].problem);
        CHECK(fast == golden[k].hash, "%s: the kernels' bits changed", golden[k].problem);
    }
    return finish_checks();
}
