#!/usr/bin/env python3
"""Derives the polynomials of src/spec/exponential.h and prints them with their error.

exp: P(r) = (e^r - 1 - r) / r^2 on |r| <= ln(2)/2, degree 9.
log: Q(z) = (2 atanh(s)/s - 2) / z with z = s^2, on the s of arguments 1/sqrt(2)..sqrt(2), degree 6.
For types of 24 bits and less:
exp: P(f) = (2^f - 1) / f on |f| <= 1/2, degree 7.
log: Q as above, degree 4, on the s of arguments 2^-k..2^k with k = 0.5861: half a binary exponent, and how far
     the fraction of a binary64 number, added to its exponent, may be from its logarithm.
All are interpolants at Chebyshev nodes, rounded to binary64. Needs mpmath.
"""
from mpmath import atanh, cos, exp, log, lu_solve, matrix, mp, mpf, pi, sqrt

mp.prec = 200


def interpolate(function, low, high, degree):
    count = degree + 1
    nodes = [(low + high) / 2 + (high - low) / 2 * cos(pi * (2 * k + 1) / (2 * count))
             for k in range(count)]
    powers = matrix(count, count)
    values = matrix(count, 1)
    for row, node in enumerate(nodes):
        values[row] = function(node)
        for column in range(count):
            powers[row, column] = node ** column
    return [mpf(float(c)) for c in lu_solve(powers, values)]


def polynomial(coefficients, x):
    return sum(c * x ** power for power, c in enumerate(coefficients))


def report(name, coefficients, relative_error, low, high):
    points = [low + (high - low) * k / 4000 for k in range(4001)]
    worst = max(abs(relative_error(x)) for x in points if abs(x) > mpf(10) ** -6)
    print(f"{name}: relative error 2^{mp.nstr(log(worst, 2), 4)}")
    for c in coefficients:
        print(f"    {float(c).hex()},")


margin = mpf("1.0001")  # the reduced arguments may overshoot by a rounding
half = log(mpf(2)) / 2 * margin
p = interpolate(lambda r: (exp(r) - 1 - r) / r ** 2, -half, half, 9)
report("exp", p, lambda r: (1 + r + r * r * polynomial(p, r)) / exp(r) - 1, -half, half)

p = interpolate(lambda f: (mpf(2) ** f - 1) / f, -margin / 2, margin / 2, 7)
report("short exp", p, lambda f: (1 + f * polynomial(p, f)) / mpf(2) ** f - 1, -margin / 2, margin / 2)

for name, ratio, degree in ("log", sqrt(mpf(2)), 6), ("short log", mpf(2) ** 0.5861, 4):
    z_max = ((ratio - 1) / (ratio + 1)) ** 2 * margin
    q = interpolate(lambda z: (2 * atanh(sqrt(z)) / sqrt(z) - 2) / z, mpf(10) ** -20, z_max, degree)
    report(name, q, lambda z: sqrt(z) * (2 + z * polynomial(q, z)) / (2 * atanh(sqrt(z))) - 1, mpf(0), z_max)
# ln 2 in three parts: the first two have 26 bits each, so that their products with integers of
# up to 27 bits are exact in binary64.
rest = log(mpf(2))
for bits in (26, 52, None):
    part = mpf(float(rest)) if bits is None else mp.floor(rest * mpf(2) ** bits) / mpf(2) ** bits
    print("ln2 part", float(part).hex())
    rest -= part
print("log2(e)", float(1 / log(mpf(2))).hex())
