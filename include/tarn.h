/**
 * @file tarn.h
 * @brief Pooling with one written meaning: max, min, average, mode, smooth max and Lp norms over
 * windows of a tensor, with value, forward-mode (JVP) and reverse-mode (VJP) derivatives.
 *
 * Numbers in brackets, such as [W2], cite the clauses of docs/spec.md.
 *
 * Conventions that hold for every function of this header:
 *  - **Ownership.** The library owns no tensor. A view is borrowed for the call only; a plan copies
 *    what it needs and never looks at the views, the descriptor or the options again.
 *  - **Aliasing.** No two elements of a written tensor may share memory, nor may its memory, from
 *    the first byte to the last, meet that of another tensor of the call (interleaved tensors are
 *    refused, too). Both are checked; read-only tensors may alias each other freely.
 *  - **Arithmetic.** The bits are those of round-to-nearest with subnormals kept, whatever
 *    flush-to-zero, rounding mode or traps the caller has set: they are put aside for the run [S6].
 *  - **Stack.** A pass takes less than 66 KiB of the stack of each thread that works on it, any
 *    other call less than 96 KiB; custom nodes of a graph come on top.
 *  - **Threading.** No function keeps state between calls, except what it found out about the CPU
 *    and the compiler. A plan is immutable: any number of threads may run one plan at once.
 *  - **Errors.** Functions that can fail return a tarn_status and fill the caller's tarn_error (on
 *    success with TARN_OK and an empty message), which may be NULL. Everything is checked before
 *    anything is written: a failed call writes nothing but the error.
 *  - **Data.** Pointers are aligned to their element (BAD_LAYOUT otherwise) and may be NULL only
 *    for empty tensors or where a function says so.
 *  - **Order.** x, y: input and output; dx, dy: their tangents; gx, gy: their cotangents.
 */
#ifndef TARN_H
#define TARN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#if defined(                                                                                       \
    TARN_STATIC) /* you link the static library: define this before you include the header */
#define TARN_API
#elif defined(TARN_BUILD)
#define TARN_API __declspec(dllexport)
#else
#define TARN_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define TARN_API __attribute__((visibility("default")))
#else
#define TARN_API
#endif

#define TARN_VERSION_MAJOR 0 /**< Changes when the meaning or the ABI changes. */
#define TARN_VERSION_MINOR 1 /**< Changes when something is added. */
#define TARN_VERSION_PATCH 0 /**< Changes when something is mended. */

#define TARN_MAX_SPATIAL 8 /**< Greatest number of pooled (spatial) axes. */
#define TARN_MAX_RANK 64   /**< Greatest number of axes of a view, leading and spatial. */

/* ------------------------------------------------------------------------------------------ */
/** @name Errors
 *  @{ */

/** What went wrong. Zero is success. */
typedef enum tarn_status {
    TARN_OK = 0,
    TARN_BAD_ARGUMENT, /**< A NULL pointer or a value outside its enumeration. */
    TARN_BAD_RANK,     /**< Number of axes out of range or not matching. */
    TARN_BAD_SHAPE, /**< A size that is negative, empty where it may not be, or not as expected. */
    TARN_BAD_WINDOW,   /**< Kernel, stride, dilation, padding or output size out of range. */
    TARN_DOES_NOT_FIT, /**< The window is larger than the padded input. */
    TARN_BAD_VALUE,    /**< beta, power, divisor, skipped value or min_count out of range. */
    TARN_BAD_DTYPE,    /**< Scalar type not allowed here or not matching. */
    TARN_BAD_LAYOUT,   /**< Strides make elements of a written tensor overlap. */
    TARN_OVERFLOW,     /**< A size, offset or byte count does not fit 63 bits. */
    TARN_ALIAS,        /**< A written tensor shares memory with another tensor of the call. */
    TARN_BAD_INDEX,    /**< An index handed to unpool lies outside the output. */
    TARN_NO_MEMORY,    /**< The allocator returned NULL. */
    TARN_UNSUPPORTED,  /**< Not in this build, or excluded by the ISA mask. */
    TARN_BAD_TEXT      /**< A problem string that does not parse. */
} tarn_status;

/** A caller-owned error: code, place and a sentence with the numbers in it. */
typedef struct tarn_error {
    tarn_status code;  /**< The same code that the function returned. */
    int axis;          /**< Spatial axis (0 is the outermost one) where there is one, else -1. */
    char message[240]; /**< For example "kernel 5 does not fit axis 1: padded size is 3". */
} tarn_error;

/** The name of a status, such as "TARN_BAD_SHAPE"; "unknown" for other numbers. Static text. */
TARN_API const char *tarn_status_name(tarn_status status);

/** @} */
/* ------------------------------------------------------------------------------------------ */
/** @name Tensors
 *  @{ */

/** Scalar types. f16 is IEEE binary16, bf16 is bfloat16; both travel as 16-bit patterns. */
typedef enum tarn_dtype {
    TARN_F64,
    TARN_F32,
    TARN_F16,
    TARN_BF16,
    TARN_I8,
    TARN_U8,
    TARN_I16,
    TARN_U16,
    TARN_I32,
    TARN_U32,
    TARN_I64,
    TARN_U64,
    TARN_DTYPES /**< How many there are; not a type. */
} tarn_dtype;

/** Bytes of one element; 0 for a number that is not a dtype. */
TARN_API size_t tarn_dtype_size(tarn_dtype dtype);

/** "f32", "i8", ...; "?" for a number that is not a dtype. Static text. */
TARN_API const char *tarn_dtype_name(tarn_dtype dtype);

/**
 * A strided view of a tensor [T1-T4]: leading axes first, spatial axes last, whatever the memory
 * order. Channels last is a view whose strides say so, not a mode. Strides count elements; those
 * of inputs may be zero or negative.
 */
typedef struct tarn_view {
    void *data;       /**< Element [0,0,...]; not used where only a layout is asked for. */
    tarn_dtype dtype; /**< Scalar type. */
    int rank;         /**< Number of axes, at most TARN_MAX_RANK. */
    int64_t shape[TARN_MAX_RANK];   /**< Sizes. */
    int64_t strides[TARN_MAX_RANK]; /**< Distance between neighbours, in elements. */
} tarn_view;

/**
 * A dense row-major view (the last axis is contiguous).
 * Never fails: a rank outside 0..TARN_MAX_RANK is kept for the checker of the next call to refuse,
 * and no array is touched beyond its end. The data is borrowed.
 */
TARN_API tarn_view tarn_view_dense(void *data, tarn_dtype dtype, int rank, const int64_t *shape);

/**
 * A dense channels-last view: logical shape [..., C, spatial...], memory order [..., spatial...,
 * C]. `spatial` is the number of spatial axes; axis rank-spatial-1 is the channel. Without a
 * channel axis (spatial >= rank) the view is plain dense. Never fails, as tarn_view_dense().
 *
 * An NHWC batch of images has shape {N, C, H, W} here, not {N, H, W, C}: the shape is logical, the
 * strides tell where things lie. Outputs planned from such a view lie channels last, too.
 */
TARN_API tarn_view tarn_view_channels_last(void *data, tarn_dtype dtype, int rank, int spatial,
                                           const int64_t *shape);

/** Bytes from the first to the last element that a view reaches, both included: what to allocate
 * for a layout without negative strides. 0 for an empty view, and for one that no call would
 * accept; SIZE_MAX where size_t is too narrow, so that allocating fails. */
TARN_API size_t tarn_view_bytes(const tarn_view *view);

/** @} */
/* ------------------------------------------------------------------------------------------ */
/** @name Descriptor
 *  @{ */

/** The operator. */
typedef enum tarn_op {
    TARN_MAX,    /**< Greatest real tap [M1]. */
    TARN_MIN,    /**< Least real tap [M1]. */
    TARN_AVG,    /**< Sum over divisor [A1]. */
    TARN_SMOOTH, /**< log-sum-exp with sharpness beta [L1]. */
    TARN_LP,     /**< p-norm: (sum of |x|^p)^(1/p), p = power [N1]. */
    TARN_MODE,   /**< Most frequent real tap, of equals the least; integers, no derivatives [F1]. */
    TARN_OPS     /**< How many there are; not an operator. */
} tarn_op;

/** How windows are placed. */
typedef enum tarn_window {
    TARN_SLIDING,  /**< kernel, stride, dilation, padding, ceil_mode [W1-W3]. */
    TARN_ADAPTIVE, /**< out windows share the axis evenly [W4]. */
    TARN_GLOBAL,   /**< One window over everything [W5]. */
    TARN_WINDOWS   /**< How many there are; not a rule. */
} tarn_window;

/** Who receives the derivative of max and min when several taps reach the extreme [M6]. */
typedef enum tarn_ties {
    TARN_TIES_FIRST, /**< The first in row-major order. */
    TARN_TIES_ALL,   /**< Each of them, whole. */
    TARN_TIES_SPLIT, /**< Each of them an equal share. */
    TARN_TIES        /**< How many rules there are; not a rule. */
} tarn_ties;

/** Which real taps max, min, avg and mode leave out [K1]. */
typedef enum tarn_skip {
    TARN_SKIP_NOTHING,  /**< All of them count. */
    TARN_SKIP_NAN,      /**< NaN does not: floating dtypes. */
    TARN_SKIP_INTEGER,  /**< Those equal to skip_integer do not. */
    TARN_SKIP_UNSIGNED, /**< Those equal to (uint64_t)skip_integer do not: u64 from 2^63 on. */
    TARN_SKIP_REAL,     /**< Those equal to skip_real do not. */
    TARN_SKIPS          /**< How many rules there are; not a rule. */
} tarn_skip;

/**
 * What to compute: a plain struct, copied freely. Make one with a constructor below, then change
 * what differs: any operator goes with any window rule, so an adaptive min, say, is
 * tarn_adaptive_max_pool() with .op = TARN_MIN. Members that operator and window do not use are
 * ignored.
 */
typedef struct tarn_pool {
    tarn_op op;                         /**< Operator. */
    tarn_window window;                 /**< Window rule. */
    int spatial;                        /**< Number of spatial axes, 1..TARN_MAX_SPATIAL. */
    int64_t kernel[TARN_MAX_SPATIAL];   /**< Sliding: taps per axis, >= 1. */
    int64_t stride[TARN_MAX_SPATIAL];   /**< Sliding: step between windows, >= 1. */
    int64_t dilation[TARN_MAX_SPATIAL]; /**< Sliding: step between taps, >= 1. */
    int64_t pad_lo[TARN_MAX_SPATIAL]; /**< Sliding: padding before the axis, >= 0. A window may lie
                                             in it altogether: max gives 0 then [M4]. */
    int64_t pad_hi[TARN_MAX_SPATIAL]; /**< Sliding: padding after the axis, >= 0. */
    int64_t out[TARN_MAX_SPATIAL];    /**< Adaptive: windows per axis, >= 1. */
    int ceil_mode;         /**< Sliding: keep a last window that hangs over the edge [W3]. */
    int count_include_pad; /**< avg: padding counts in the divisor [A2]; smooth: as 0 [L2]. */
    int64_t divisor; /**< avg: 0 counts taps, > 0 is the divisor itself; 1 gives sums [A2, A6]. */
    double beta;           /**< smooth: finite and not zero [L1]. */
    double power;          /**< lp: the p of the norm, finite and at least 1 [N1]. */
    tarn_ties ties;        /**< max, min: the tie rule of the derivatives. */
    int flat;              /**< Global: drop the spatial axes instead of keeping 1x...x1. */
    tarn_skip skip;        /**< max, min, avg, mode: which taps are left out. */
    int64_t skip_integer;  /**< The skipped value, or its bits. */
    double skip_real;      /**< The skipped value: not NaN. */
    int64_t min_count; /**< Windows with fewer counted taps have the skipped value [K3]; >= 0. */
    int64_t
        whole[TARN_MAX_SPATIAL]; /**< 0: x has the whole axis. Otherwise x is a part of one of so
                                             many cells, which the members above speak of [P1]. */
    int64_t origin[TARN_MAX_SPATIAL]; /**< Piece: the cell of the whole axis that is x's first. */
    int64_t first[TARN_MAX_SPATIAL];  /**< Piece: the window of the whole axis that is y's first. */
    int64_t count[TARN_MAX_SPATIAL];  /**< Piece: the windows that y has. */
    int64_t reserved[4];              /**< Zero, for what is to come. */
} tarn_pool;

/** Sliding max over `spatial` axes, kernel and stride 1 until changed. No error, no allocation;
 *  arguments out of range are kept for the plan's checker. So are all constructors. */
TARN_API tarn_pool tarn_max_pool(int spatial);
/** Sliding min; otherwise as tarn_max_pool(). */
TARN_API tarn_pool tarn_min_pool(int spatial);
/** Sliding average, padding counted; otherwise as tarn_max_pool(). */
TARN_API tarn_pool tarn_avg_pool(int spatial);
/** Sliding smooth max, padding is the number 0; otherwise as tarn_max_pool(). */
TARN_API tarn_pool tarn_smooth_pool(int spatial, double beta);
/** Sliding p-norm; padding adds nothing; otherwise as tarn_max_pool(). */
TARN_API tarn_pool tarn_lp_pool(int spatial, double power);
/** Sliding mode, of integers; otherwise as tarn_max_pool(). */
TARN_API tarn_pool tarn_mode_pool(int spatial);
/** Sliding sum: the average with divisor 1 [A6]; otherwise as tarn_max_pool(). */
TARN_API tarn_pool tarn_sum_pool(int spatial);

/** N-D max: kernel, stride and symmetric padding per axis, outermost first. Arrays of `spatial`
 *  numbers; stride NULL is the kernel, padding NULL is 0. */
TARN_API tarn_pool tarn_max_pool_nd(int spatial, const int64_t *kernel, const int64_t *stride,
                                    const int64_t *padding);
/** N-D average; arguments as tarn_max_pool_nd(). */
TARN_API tarn_pool tarn_avg_pool_nd(int spatial, const int64_t *kernel, const int64_t *stride,
                                    const int64_t *padding);
/** N-D smooth max; arguments as tarn_max_pool_nd(), then beta. Padding is the number 0 and counts;
 * set .count_include_pad = 0 to leave it out [L2]. */
TARN_API tarn_pool tarn_smooth_pool_nd(int spatial, const int64_t *kernel, const int64_t *stride,
                                       const int64_t *padding, double beta);
/** N-D p-norm; arguments as tarn_max_pool_nd(), then the p of the norm. */
TARN_API tarn_pool tarn_lp_pool_nd(int spatial, const int64_t *kernel, const int64_t *stride,
                                   const int64_t *padding, double power);

/** N-D mode; arguments as tarn_max_pool_nd(). For an ignored value set .skip and .skip_integer
 * [K1]. */
TARN_API tarn_pool tarn_mode_pool_nd(int spatial, const int64_t *kernel, const int64_t *stride,
                                     const int64_t *padding);

/** 2-D max, one stride for both axes, no padding. */
TARN_API tarn_pool tarn_max_pool2d(int64_t kernel_h, int64_t kernel_w, int64_t stride);
/** 2-D max, one stride and one symmetric padding; padding never wins. */
TARN_API tarn_pool tarn_max_pool2d_padded(int64_t kernel_h, int64_t kernel_w, int64_t stride,
                                          int64_t padding);
/** 2-D average, one stride for both axes, no padding. */
TARN_API tarn_pool tarn_avg_pool2d(int64_t kernel_h, int64_t kernel_w, int64_t stride);
/** 2-D average, one stride and one symmetric padding, which counts as zeros. */
TARN_API tarn_pool tarn_avg_pool2d_padded(int64_t kernel_h, int64_t kernel_w, int64_t stride,
                                          int64_t padding);
/** 2-D smooth max, one stride for both axes, no padding. */
TARN_API tarn_pool tarn_smooth_pool2d(int64_t kernel_h, int64_t kernel_w, int64_t stride,
                                      double beta);
/** 2-D p-norm, one stride for both axes, no padding. */
TARN_API tarn_pool tarn_lp_pool2d(int64_t kernel_h, int64_t kernel_w, int64_t stride, double power);

/** Adaptive max to `out` windows per axis (array of `spatial` numbers). */
TARN_API tarn_pool tarn_adaptive_max_pool(int spatial, const int64_t *out);
/** Adaptive average to `out` windows per axis. */
TARN_API tarn_pool tarn_adaptive_avg_pool(int spatial, const int64_t *out);

/** Global max; `flat` drops the spatial axes. Tie rule `all` (set .ties for `split` or `first`). */
TARN_API tarn_pool tarn_global_max_pool(int spatial, int flat);
/** Global average; `flat` drops the spatial axes. */
TARN_API tarn_pool tarn_global_avg_pool(int spatial, int flat);
/** Global p-norm; `flat` drops the spatial axes. */
TARN_API tarn_pool tarn_global_lp_pool(int spatial, int flat, double power);

/** @} */
/* ------------------------------------------------------------------------------------------ */
/** @name Shapes
 *  @{ */

/**
 * Output size of one sliding axis [W2, W3].
 * Errors: BAD_WINDOW, BAD_SHAPE, DOES_NOT_FIT, OVERFLOW (error.axis is 0). Writes only *out.
 */
TARN_API tarn_status tarn_output_size(int64_t size, int64_t kernel, int64_t stride,
                                      int64_t dilation, int64_t pad_lo, int64_t pad_hi,
                                      int ceil_mode, int64_t *out, tarn_error *error);

/**
 * Shape of a 2-D pooling with one stride and symmetric padding: [H,W] (rank 2), [C,H,W] (rank 3) or
 * any rank above; `out_shape` receives `rank` numbers. Errors as the plan's.
 */
TARN_API tarn_status tarn_pool2d_shape(int rank, const int64_t *shape, int64_t kernel_h,
                                       int64_t kernel_w, int64_t stride, int64_t padding,
                                       int64_t *out_shape, tarn_error *error);

/** Shape of a global pooling over the last `spatial` axes: (C,H,W) to (C,1,1), or to (C) if flat.
 *  `out_shape` has room for `rank` numbers; *out_rank says how many were written. */
TARN_API tarn_status tarn_global_shape(int rank, const int64_t *shape, int spatial, int flat,
                                       int64_t *out_shape, int *out_rank, tarn_error *error);

/**
 * Output of `pool` on an input like `x` (its data is not used): *y receives dtype, rank, shape and
 * dense strides in the axis order of x, with NULL data. Errors: those of planning, which also
 * refuses (OVERFLOW) a problem whose gradient or indices would not fit 63 bits.
 */
TARN_API tarn_status tarn_output_view(const tarn_pool *pool, const tarn_view *x, tarn_view *y,
                                      tarn_error *error);

/** First cell of adaptive window i: floor(i*in/out) [W4]; -1 unless 0 <= i < out and in >= 0. */
TARN_API int64_t tarn_adaptive_start(int64_t i, int64_t in, int64_t out);
/** One past the last cell of adaptive window i: ceil((i+1)*in/out) [W4]; -1 as above. */
TARN_API int64_t tarn_adaptive_end(int64_t i, int64_t in, int64_t out);

/** @} */
/* ------------------------------------------------------------------------------------------ */
/** @name Options
 *  @{ */

/** Runs body(argument, 0) ... body(argument, count-1), in any order and on any threads, and returns
 *  when all are done. Called once a pass, with count <= parts, in the thread that runs the pass; if
 *  several threads run plans with one executor at once, it is called by them at once. */
typedef void (*tarn_parallel_for)(void *context, int count, void (*body)(void *argument, int index),
                                  void *argument);

/** Who runs the parts of a pass. The results do not depend on it, not in one bit [S6]. */
typedef struct tarn_executor {
    int parts; /**< Parts to split a pass into; 0 or 1 runs it in the caller. */
    tarn_parallel_for parallel_for; /**< Not used when parts <= 1. */
    void *context;                  /**< Handed to parallel_for; owned by the caller. */
    /** Elements of x, or of y if it has more, that a part has at least: problems too small for two
     * such parts run in the caller, as waking threads would take longer. 0: parts of any size. */
    int64_t grain;
} tarn_executor;

/** Runs everything in the calling thread (the default). */
TARN_API tarn_executor tarn_executor_serial(void);
/** Threads of the library's own, 0 for one for each processor, and a grain of some microseconds.
 * They are one pool for the process, started when the first pass asks for them; they sleep between
 * passes and never spin. A child of fork() starts its own. Errors: UNSUPPORTED in a build without
 * threads, BAD_ARGUMENT for negative numbers. */
TARN_API tarn_status tarn_executor_threads(int threads, tarn_executor *executor, tarn_error *error);
/** OpenMP with that many threads, 0 for as many as OpenMP would use, and a grain of some
 * microseconds. Errors: UNSUPPORTED in a build without OpenMP, BAD_ARGUMENT for negative
 * numbers. */
TARN_API tarn_status tarn_executor_openmp(int threads, tarn_executor *executor, tarn_error *error);

/** Where plans live. Both functions or neither; they are called only by tarn_plan_create() and
 *  tarn_plan_destroy(), in the calling thread. */
typedef struct tarn_allocator {
    void *(*allocate)(void *context,
                      size_t bytes);              /**< As malloc: aligned for any type, or NULL. */
    void (*release)(void *context, void *memory); /**< As free. */
    void *context;                                /**< Owned by the caller. */
} tarn_allocator;

/** Kernel families, as bits of a mask. */
enum {
    TARN_ISA_SPEC = 1 << 0,     /**< The executable specification itself: slow, and right. */
    TARN_ISA_PORTABLE = 1 << 1, /**< Vectors of 16 bytes, which every machine has. */
    TARN_ISA_AVX2 = 1 << 3,     /**< x86-64 with AVX2 and F16C. */
    TARN_ISA_AVX512 = 1 << 4,  /**< x86-64 with AVX-512 F, BW, DQ and VL that keeps its clock: Intel
                                     since Ice Lake, AMD since Zen 4. */
    TARN_ISA_ALL = 0x7fffffff, /**< Whatever the machine can run. */
    TARN_ISA_SSE2 = TARN_ISA_PORTABLE, /**< What it is compiled to for x86-64. */
    TARN_ISA_NEON = TARN_ISA_PORTABLE  /**< What it is compiled to for AArch64. */
};

/** Kernel families this machine can run, less those that the environment variable TARN_ISA leaves
 *  out (a comma-separated list such as "spec" or "portable,avx2"). Computed once and cached. */
TARN_API uint32_t tarn_isa_available(void);

/** The tensors of a plan. */
typedef enum tarn_operand {
    TARN_X,       /**< Input. */
    TARN_Y,       /**< Output. */
    TARN_DX,      /**< Tangent of the input. */
    TARN_DY,      /**< Tangent of the output. */
    TARN_GX,      /**< Cotangent of the input (written by the VJP). */
    TARN_GY,      /**< Cotangent of the output. */
    TARN_INDICES, /**< int64 indices of the winners. */
    TARN_OPERANDS /**< How many there are; not a tensor. */
} tarn_operand;

#define TARN_MAX_OPERANDS 16 /**< Room for operands to come. */

/** Settings of a plan. Make one with tarn_options_default(). */
typedef struct tarn_options {
    /** Layouts of the tensors other than x (their data is not used). NULL: DX as x; Y and GX dense
     *  in the axis order of x; DY, GY and INDICES as Y. layout[TARN_X] is ignored. */
    const tarn_view *layout[TARN_MAX_OPERANDS];
    tarn_executor executor;   /**< Serial by default. */
    tarn_allocator allocator; /**< malloc and free by default. */
    uint32_t isa;             /**< Mask of kernel families to choose from; 0 is all of them. */
    int64_t reserved[4];      /**< Zero, for what is to come. */
} tarn_options;

/** The defaults named above. */
TARN_API tarn_options tarn_options_default(void);

/** @} */
/* ------------------------------------------------------------------------------------------ */
/** @name Plans
 *  @{ */

/** A checked problem with its kernels chosen. Immutable; any number of threads may run it. */
typedef struct tarn_plan tarn_plan;

/** The passes a plan can run. */
typedef enum tarn_pass {
    TARN_FORWARD,         /**< y. */
    TARN_FORWARD_SAVED,   /**< y and saved winners. */
    TARN_FORWARD_INDICES, /**< y and int64 indices. */
    TARN_JVP,             /**< dy (and y) from x and dx. */
    TARN_VJP,             /**< gx from x and gy. */
    TARN_VJP_SAVED,       /**< gx from saved winners and gy. */
    TARN_PASSES           /**< How many there are; not a pass. */
} tarn_pass;

/**
 * Checks a problem and chooses its kernels.
 * @param plan     Receives the plan; NULL on error. Free it with tarn_plan_destroy().
 * @param pool     What to compute.
 * @param x        Layout of the input; its data is not used.
 * @param options  NULL for the defaults.
 * @param error    May be NULL.
 * Errors: every status but ALIAS and BAD_INDEX. One allocation, made after all checks.
 */
TARN_API tarn_status tarn_plan_create(tarn_plan **plan, const tarn_pool *pool, const tarn_view *x,
                                      const tarn_options *options, tarn_error *error);

/** Frees a plan; NULL is allowed. No thread may still be running it. */
TARN_API void tarn_plan_destroy(tarn_plan *plan);

/** Layout of one tensor of the plan, with NULL data: what a caller has to allocate.
 *  Errors: BAD_ARGUMENT. */
TARN_API tarn_status tarn_plan_layout(const tarn_plan *plan, tarn_operand operand, tarn_view *view,
                                      tarn_error *error);

/** Bytes that tarn_forward() writes to `saved`: for max and min under tie rule `first` one byte for
 *  each output while windows have at most 255 taps, then four, then eight. Otherwise 0: there are
 *  no winners to save, and `saved` must be NULL. */
TARN_API size_t tarn_plan_saved_bytes(const tarn_plan *plan);

/** Writes one sentence on the kernel chosen for a pass, why, and the bytes it moves. Returns the
 *  length of the whole sentence like snprintf, or a negative number for a NULL plan, a bad
 *  pass, or a pass that this plan does not have. */
TARN_API int tarn_plan_explain(const tarn_plan *plan, tarn_pass pass, char *text, size_t size);

/**
 * y = pool(x), and the winners for a later VJP [M1, A1, L1, N1, F1].
 * @param plan   A plan.
 * @param x      Input, laid out as planned.
 * @param y      Output; written in full.
 * @param saved  NULL, or tarn_plan_saved_bytes() bytes, any alignment; opaque, valid for this plan
 *               and for any other plan of the same problem and layout of y.
 * @param error  May be NULL.
 * Allocates nothing. Errors: BAD_ARGUMENT (NULL), ALIAS, UNSUPPORTED (`saved` where winners
 * are not kept).
 */
TARN_API tarn_status tarn_forward(const tarn_plan *plan, const void *x, void *y, void *saved,
                                  tarn_error *error);

/** y = pool(x) and the index of each winner: its position in the flattened spatial input of its
 *  leading index, -1 for a window without a real tap [M5]. y may be NULL. max and min only;
 *  otherwise as tarn_forward(). */
TARN_API tarn_status tarn_forward_indices(const tarn_plan *plan, const void *x, void *y,
                                          int64_t *indices, tarn_error *error);

/** dy = J(x) dx, and y if it is not NULL. For avg that skips nothing x may be NULL, without y.
 * Floating types only. Allocates nothing. Errors: BAD_ARGUMENT, ALIAS, BAD_DTYPE (integers have no
 * derivative). */
TARN_API tarn_status tarn_jvp(const tarn_plan *plan, const void *x, const void *dx, void *y,
                              void *dy, tarn_error *error);

/**
 * gx = J(x)' gy: every cell of gx is written once, by one thread, in a fixed order [S4, S5].
 * max and min need x, or under tie rule `first` the winners saved by tarn_forward() (then x may
 * be NULL); avg needs neither, or x if it skips; smooth and lp need x. A corrupt saved winner is
 * never followed outside its window: it contributes nothing. Allocates nothing. Errors:
 * BAD_ARGUMENT, ALIAS, BAD_DTYPE, UNSUPPORTED.
 */
TARN_API tarn_status tarn_vjp(const tarn_plan *plan, const void *x, const void *saved,
                              const void *gy, void *gx, tarn_error *error);

/** @} */
/* ------------------------------------------------------------------------------------------ */
/** @name Pieces
 * A problem too large for one memory is cut: each piece is a pooling of its own, and together they
 * have the bits of one call [P1-P4].
 *  @{ */

/** The coordinates [lo,hi) of every axis of a tensor. */
typedef struct tarn_box {
    int64_t lo[TARN_MAX_RANK]; /**< First coordinates. */
    int64_t hi[TARN_MAX_RANK]; /**< One past the last ones. */
} tarn_box;

/**
 * What computes a box of the tensor that a pass writes, and what that reads [P2, P3].
 * @param pool     The whole problem; not a piece of one.
 * @param x        Layout of the whole input; its data is not used.
 * @param pass     A pass that the problem has.
 * @param written  The wanted box: of gx for the two VJPs, else of y (also of dy, indices, saved
 * winners).
 * @param piece    Receives the pool to plan or call on the boxes.
 * @param x_box    Receives the cells of the piece: its x, dx and gx.
 * @param y_box    Receives the windows of the piece: its y, dy, gy, indices and saved winners.
 * @param error    May be NULL.
 * The piece writes all of y_box, or of x_box for the VJPs; that holds `written`, which is what to
 * keep of it. Of the tensors that the pass does not read (x of avg, and where winners are saved)
 * the box says the layout only. An empty leading range makes an empty piece. Errors: those of
 * planning; BAD_SHAPE for a box that is not in the tensor or, on a spatial axis, empty;
 * UNSUPPORTED.
 */
TARN_API tarn_status tarn_piece(const tarn_pool *pool, const tarn_view *x, tarn_pass pass,
                                const tarn_box *written, tarn_pool *piece, tarn_box *x_box,
                                tarn_box *y_box, tarn_error *error);

#define TARN_MAX_NODES 128 /**< Room for the nodes of any part of any list. */

/** The terms [lo,hi) of a list of n as nodes of its tree [S1, P4]: `ends` receives where each of
 * them ends, the first begins at lo. Returns how many there are, at most 2*ceil(log2 n), or 1 for
 * the whole list; 0 unless 0 <= lo < hi <= n. */
TARN_API int tarn_nodes(int64_t n, int64_t lo, int64_t hi, int64_t ends[TARN_MAX_NODES]);

/** @} */
/* ------------------------------------------------------------------------------------------ */
/** @name Calls without a plan
 * The same checks, kernels and bits as a plan with default options; nothing is allocated. Every
 * view carries its data and its layout. Errors: those of planning and of the pass; BAD_SHAPE,
 * BAD_RANK and BAD_DTYPE if a view does not have the shape, rank or type that the problem gives it.
 *  @{ */

/** y = pool(x). */
TARN_API tarn_status tarn_pool_forward(const tarn_pool *pool, const tarn_view *x,
                                       const tarn_view *y, tarn_error *error);
/** y = pool(x) and int64 indices; y may be NULL. */
TARN_API tarn_status tarn_pool_indices(const tarn_pool *pool, const tarn_view *x,
                                       const tarn_view *y, const tarn_view *indices,
                                       tarn_error *error);
/** dy = J(x) dx, and y if it is not NULL. */
TARN_API tarn_status tarn_pool_jvp(const tarn_pool *pool, const tarn_view *x, const tarn_view *dx,
                                   const tarn_view *y, const tarn_view *dy, tarn_error *error);
/** gx = J(x)' gy. For avg that skips nothing only the layout of x is used. */
TARN_API tarn_status tarn_pool_vjp(const tarn_pool *pool, const tarn_view *x, const tarn_view *gy,
                                   const tarn_view *gx, tarn_error *error);

/** @} */
/* ------------------------------------------------------------------------------------------ */
/** @name Helpers
 *  @{ */

/** y = x with `lo[a]` zeros before and `hi[a]` zeros after each of the last `spatial` axes [H1].
 *  Any dtype; y has the padded shape. Errors: BAD_ARGUMENT, BAD_RANK, BAD_SHAPE, BAD_WINDOW
 *  (negative padding), BAD_DTYPE, BAD_LAYOUT, OVERFLOW, ALIAS. */
TARN_API tarn_status tarn_pad(const tarn_view *x, int spatial, const int64_t *lo, const int64_t *hi,
                              const tarn_view *y, tarn_error *error);
/** y = x without `lo[a]` cells before and `hi[a]` after: the adjoint of tarn_pad(), and its left
 *  inverse [H2]. Errors as tarn_pad(), and DOES_NOT_FIT if there is less to remove. */
TARN_API tarn_status tarn_unpad(const tarn_view *x, int spatial, const int64_t *lo,
                                const int64_t *hi, const tarn_view *y, tarn_error *error);
/** tarn_unpad() of one symmetric padding on the last two axes: [H+2p,W+2p] to [H,W], or with
 *  leading axes such as [C,H+2p,W+2p] to [C,H,W]. */
TARN_API tarn_status tarn_unpad2d(const tarn_view *x, int64_t padding, const tarn_view *y,
                                  tarn_error *error);
/** y = zeros, then each value of x written at its index in the flattened spatial axes of y; where
 * two name one cell the later in row-major order stays; index -1 (no winner) writes nothing [H3].
 * `indices` is int64 and has the shape of x. Errors as tarn_pad(), and BAD_INDEX: then nothing is
 * written. */
TARN_API tarn_status tarn_unpool(const tarn_view *x, const tarn_view *indices, int spatial,
                                 const tarn_view *y, tarn_error *error);

/** Folds one element into the accumulator of a reduction. `accumulator` is the output element. */
typedef void (*tarn_fold)(void *context, void *accumulator, const void *element);

/** Generic global pooling with a reduction of the caller's own: every element of y, which the
 * caller has set to the reduction's start value, is folded with the cells of its leading index in
 * row-major order. y has shape (...,1,...,1) or, flat, (...); any two dtypes. Errors as
 * tarn_pad(). */
TARN_API tarn_status tarn_global_fold(const tarn_view *x, int spatial, tarn_fold fold,
                                      void *context, const tarn_view *y, tarn_error *error);

/** @} */
/* ------------------------------------------------------------------------------------------ */
/** @name Problem strings
 * One line says it all: "max k3s2p1 f32 1x64x112x112". docs/problem-strings.md has the grammar.
 *  @{ */

/** Parses a problem. x receives a dense view with NULL data. Errors: BAD_TEXT with the column in
 * the message. The problem itself is checked by planning, not here. */
TARN_API tarn_status tarn_problem_parse(const char *text, tarn_pool *pool, tarn_view *x,
                                        tarn_error *error);
/** Writes a problem so that parsing gives it back (the layout of x as dense or channels last; other
 *  strides are not expressed). Returns the full length like snprintf; negative for NULL, a rank out
 *  of range or a number that is no operator. */
TARN_API int tarn_problem_format(const tarn_pool *pool, const tarn_view *x, char *text,
                                 size_t size);

/** "0.1.0". Static text. */
TARN_API const char *tarn_version(void);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
