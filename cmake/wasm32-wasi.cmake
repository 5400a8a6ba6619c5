# Builds for WebAssembly with Debian's clang, lld and wasi-libc; programs run in Node.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang)
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
# The 16-byte vectors of the portable family become those of WebAssembly.
set(CMAKE_C_FLAGS_INIT -msimd128)
# The linker's own 64 KiB of stack are too few, and overflow silently unless the stack comes first.
# -O0 is of the link alone: with another level clang runs Binaryen's wasm-opt where it is installed, and does not tell it of vectors.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-O0 -Wl,--stack-first -Wl,-z,stack-size=1048576 -Wl,--gc-sections")
# There are no threads, so there is no library of threads to look for.
set(CMAKE_HAVE_LIBC_PTHREAD ON CACHE BOOL "")
