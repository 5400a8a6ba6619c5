/* Debian's compiler runtime for wasm32 was built with stack protectors; wasi-libc has none. */
#include <stdint.h>

uintptr_t __stack_chk_guard = 0x5eed;
_Noreturn void __stack_chk_fail(void);
_Noreturn void __stack_chk_fail(void)
{
    __builtin_trap();
}
