/* Ends what isa_begin.h began. */
#if defined(__clang__) && defined(PREFIX) && !defined(ISA_BASELINE)
#pragma clang attribute pop
#endif
