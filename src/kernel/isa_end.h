/* Ends what isa_begin.h began. */
#if defined(__clang__) && defined(__x86_64__) && !defined(ISA_BASELINE)
#pragma clang attribute pop
#endif
