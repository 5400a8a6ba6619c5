# Builds for x86-64; tests run in Bochs, on a CPU with AVX-512, so they are linked statically.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER gcc)
set(CMAKE_C_FLAGS_INIT -DTARN_NO_VCVTPS2PH) # which Bochs 2.7 gets wrong
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR
  ${CMAKE_CURRENT_LIST_DIR}/../tools/bochs.sh TARN_ISA=spec,avx512)
