# Builds for another machine with the C compiler inside zig (tools/machines.sh): TARN_ZIG is its program, TARN_TARGET the machine, as
# zig names it, TARN_ZIG_TOOLS a folder with ar and ranlib of zig's.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TARN_ZIG TARN_TARGET TARN_ZIG_TOOLS)
if(TARN_TARGET MATCHES "-windows-")
  set(CMAKE_SYSTEM_NAME Windows)
elseif(TARN_TARGET MATCHES "-macos")
  set(CMAKE_SYSTEM_NAME Darwin)
else()
  set(CMAKE_SYSTEM_NAME Linux)
endif()
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR ${TARN_TARGET})
set(CMAKE_C_COMPILER ${TARN_ZIG} cc -target ${TARN_TARGET})
set(CMAKE_AR ${TARN_ZIG_TOOLS}/ar)
set(CMAKE_RANLIB ${TARN_ZIG_TOOLS}/ranlib)
