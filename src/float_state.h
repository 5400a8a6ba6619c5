/* The floating-point state that results need [S6]: round to nearest, keep subnormals, no traps.
 * Callers may have another one: from start-up code of -ffast-math, torch.set_flush_denormal(),
 * fesetround(), feenableexcept(). It belongs to the thread, so each part of a run sets and
 * restores it. Reading the register takes a few cycles, writing it some twenty more, and is done
 * only where it differs. */
#ifndef TARN_FLOAT_STATE_H
#define TARN_FLOAT_STATE_H

#include "scalar.h"

#if defined __x86_64__
/* MXCSR: flush to zero, rounding, masks of the traps, denormals are zero; below them the flags. */
enum { FLOAT_CONTROL = 0xffc0, FLOAT_WANTED = 0x1f80 };
static inline uint64_t read_float_state(void)
{
    return __builtin_ia32_stmxcsr();
}
static inline void write_float_state(uint64_t state)
{
    __builtin_ia32_ldmxcsr((unsigned)state);
}
#elif defined __aarch64__
/* FPCR: alternative half precision, default NaN, flush to zero, rounding, FZ16; enabled traps;
 * NEP, AH, FIZ. */
enum { FLOAT_CONTROL = 0x07c89f07, FLOAT_WANTED = 0 };
static inline uint64_t read_float_state(void)
{
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    return state;
}
static inline void write_float_state(uint64_t state)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(state) : "memory");
}
#else
enum { FLOAT_CONTROL = 0, FLOAT_WANTED = 0 };
static inline uint64_t read_float_state(void)
{
    return 0;
}
static inline void write_float_state(uint64_t state)
{
    (void)state;
}
#endif

static inline int is_float_state_wanted(uint64_t state)
{
    return (state & FLOAT_CONTROL) == FLOAT_WANTED;
}

/* Returns what was there, for restore_float_state(). Compilers do not know that arithmetic
 * depends on it: what lies in between must be calls that they cannot look into. */
static inline uint64_t set_float_state(void)
{
    uint64_t former = read_float_state();
    if (!is_float_state_wanted(former))
        write_float_state((former & ~(uint64_t)FLOAT_CONTROL) | FLOAT_WANTED);
    return former;
}

static inline void restore_float_state(uint64_t former)
{
    if (!is_float_state_wanted(former))
        write_float_state(former);
}

/* What strtod() and printf() need besides: on x86-64 C libraries take the rounding mode of the
 * x87, or compute with it, and fesetround() sets both. An exception that is pending there would
 * trap when its mask is restored. */
static inline unsigned set_text_state(void)
{
    uint16_t former = 0;
#if defined __x86_64__
    const uint16_t wanted = 0x37f; /* nearest, 64 bits, no traps */
    __asm__ volatile("fnstcw %0" : "=m"(former));
    if (former != wanted)
        __asm__ volatile("fldcw %0" : : "m"(wanted));
#endif
    return former;
}

static inline void restore_text_state(unsigned former)
{
#if defined __x86_64__
    const uint16_t control = (uint16_t)former;
    if (control != 0x37f)
        __asm__ volatile("fnclex; fldcw %0" : : "m"(control));
#else
    (void)former;
#endif
}

/* The questions below are asked of bits, so in any state: a comparison might trap, or take a
 * subnormal number for 0. Compilers know the patterns and would make comparisons of them again
 * (clang 19), so they must not see where the bits come from. */
static inline uint64_t hidden_bits_of_f64(double number)
{
    volatile uint64_t bits = bits_of_f64(number);
    return bits;
}

static inline bool is_zero_in_any_state(double number)
{
    return hidden_bits_of_f64(number) << 1 == 0;
}

static inline bool is_finite_in_any_state(double number)
{
    return (hidden_bits_of_f64(number) >> 52 & 0x7ff) != 0x7ff;
}

/* a < b, for a b above 0. */
static inline bool is_below_in_any_state(double a, double b)
{
    return (int64_t)hidden_bits_of_f64(a) < (int64_t)bits_of_f64(b);
}

#endif
