// One idea, one link, one sentence each. docs/explorer.md lists them; a test compares the two.

export const GALLERY = [
    [
        "floor", "Floor leaves cells out",
        "Six columns, windows of three, stride 2: the last column is read by nobody, so its gradient is 0 [W2].",
        "p=max+k3s2+f32+6x6&cell=0,5&view=vjp"
    ],
    [
        "ceil", "Ceil keeps a window that hangs over",
        "The same problem with ceil: a third row and column of windows reach beyond the edge and pool what is there [W3].",
        "p=max+k3s2+f32+6x6+ceil&sel=2,2"
    ],
    [
        "dropped", "The dropped window",
        "Rounding up would give four windows, but the fourth would start beyond the input, so it is dropped [W3].",
        "p=max+k1s2+f32+6x6+ceil&sel=2,2"
    ],
    [
        "divisor", "The divisor at the edge",
        "In the corner four taps are real and the divisor is still 9, because padding counts; nopad would make it 4 [A2].",
        "p=avg+k3s2p1+f32+5x5&sel=0,0&x=ones"
    ],
    [
        "overhang", "Beyond the padding",
        "In ceil mode the last window hangs over the padding; those taps do not count in the divisor, not even with padding counted [A2].",
        "p=avg+k3s2p1+f32+6x6+ceil&sel=3,3&x=ones"
    ],
    [
        "empty", "A window of padding alone",
        "Padding may exceed half the window. A window without a real tap is 0, index −1, and gives no gradient [M4].",
        "p=max+k2s1p2+f32+3x3&sel=0,0&x=-3,-1,-4,-1,-5,-9,-2,-6,-5&view=winners"
    ],
    [
        "ties-first", "Ties: the first takes all",
        "Three cells reach the maximum; under ties=first the whole gradient goes to the first in reading order [M6].",
        "p=max+k2+f32+4x4+ties%3Dfirst&x=7,7,1,2,7,3,2,2,0,5,5,5,5,5,5,5&sel=0,0&view=vjp"
    ],
    [
        "ties-all", "Ties: each gets it whole",
        "The same under ties=all: every cell that reaches the maximum gets all of the gradient [M6].",
        "p=max+k2+f32+4x4+ties%3Dall&x=7,7,1,2,7,3,2,2,0,5,5,5,5,5,5,5&sel=0,0&view=vjp"
    ],
    [
        "ties-split", "Ties: shared",
        "The same under ties=split: the gradient is divided by the number of cells that reach the maximum [M6].",
        "p=max+k2+f32+4x4+ties%3Dsplit&x=7,7,1,2,7,3,2,2,0,5,5,5,5,5,5,5&sel=0,0&view=vjp"
    ],
    [
        "nan", "NaN is never lost",
        "NaN ranks above every number under max, wherever it lies in the window; elsewhere its position decides [M3].",
        "p=max+k2s1+f32+4x4&x=1,2,3,4,5,nan,7,8,9,8,7,6,5,4,3,2&sel=1,1"
    ],
    [
        "zeros", "Minus zero", "−0 and +0 are equal, so the first one wins, and the value has its very bits [M2].",
        "p=max+k2+f32+2x4&x=-0,0,0,-0,-1,-2,-0,0&sel=0,0"
    ],
    [
        "dilation", "Dilation leaves gaps",
        "Dilation 2: a window of 3 × 3 taps spans five rows and columns and reads nine cells of them [W1].",
        "p=max+k3s1e2+f32+7x7&sel=1,1"
    ],
    [
        "adaptive", "Adaptive windows overlap",
        "Five windows share seven cells: each begins at floor(7i/5) and ends before ceil(7(i+1)/5), so neighbours overlap [W4].",
        "p=avg+a5+f32+d1+7&x=ramp&sel=2"
    ],
    [
        "overlap", "Overlap adds gradients",
        "Four windows read the middle cell; its gradient is what they send, added in a written order [S5].",
        "p=max+k3s1+f32+4x4&x=1,2,3,2,4,9,5,1,3,2,8,0,1,6,2,3&cell=1,1&view=vjp&gy=1,0.5,0.25,2"
    ],
    [
        "average-gradient", "An average spreads its gradient",
        "Every tap gets gy/9 from each window; where windows overlap the shares are added in halves [A5].",
        "p=avg+k3s1p1+f32+5x5&cell=2,2&view=vjp"
    ],
    [
        "beta", "β from minimum to maximum",
        "Log-sum-exp: large β follows the maximum, small β hears every tap, negative β follows the minimum [L1]. Drag it.",
        "p=smooth+k3s2p1+f32+6x6+nopad+beta%3D4&sel=1,1"
    ],
    [
        "lp", "Lp from sum to maximum",
        "p = 1 adds magnitudes, p = 2 is the Euclidean norm, and p → ∞ ends at the greatest magnitude [N1]. Drag it.",
        "p=lp+k3s2p1+f32+6x6+p%3D2&sel=1,1&x=n3"
    ],
    [
        "integers", "Means of integers",
        "The sum is exact and the quotient is rounded half to even: 2.5 becomes 2, 3.5 becomes 4 [A4].",
        "p=avg+k2+i8+4x4&x=2,3,3,4,2,3,3,4,1,2,100,127,3,4,127,127&sel=0,0"
    ],
    [
        "crop", "A crop of the pool is the pool of the crop",
        "Sums do not depend on where a window lies, so tiles and halos give the same bits [S3].",
        "p=avg+k3s1+f32+8x8&sel=2,2&x=n5"
    ],
    [
        "volume", "Three dimensions", "A window of a volume is a box: step through the slices that it reads [W6].",
        "p=max+k2s1+f32+d3+4x5x5&sel=1,1,1&at=1,1"
    ],
];

export const fragmentOf = (idea) => `#v=1&${idea[3]}`;
