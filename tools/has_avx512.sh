#!/bin/sh
# Prints ON if this machine runs the AVX-512 kernels (see ask_cpu() in src/dispatch.c), else OFF.
for feature in avx512f avx512bw avx512dq avx512vl; do
    grep -qw "$feature" /proc/cpuinfo 2>/dev/null || { echo OFF && exit; }
done
echo ON
