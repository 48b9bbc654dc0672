# Cross build for 64-bit Arm Linux with Debian's compiler (package g++-aarch64-linux-gnu) and the
# libraries of the foreign architecture arm64. tests/long/aarch64.sh installs them all, builds, and
# runs what is built under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# The builder's own libraries lie beside those of the other architecture.
set(CMAKE_SYSTEM_IGNORE_PATH /usr/lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu/cmake /lib/x86_64-linux-gnu)
# ctest runs the programs through it.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
