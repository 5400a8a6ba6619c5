/* The binary interface of DLPack 1.x, as its specification lays it out: the structures that array
 * libraries hand to each other inside capsules, and the table of functions a type may carry. */
#ifndef TARN_PYTHON_DLPACK_H
#define TARN_PYTHON_DLPACK_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 0, DLPACK_CPU = 1 };
enum {
    DLPACK_INT = 0,
    DLPACK_UINT = 1,
    DLPACK_FLOAT = 2,
    DLPACK_BFLOAT = 4,
    DLPACK_COMPLEX = 5,
    DLPACK_BOOL = 6
};
enum { DLPACK_READ_ONLY = 1 };

typedef struct {
    int32_t type, id;
} dlpack_device;

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} dlpack_dtype;

typedef struct {
    void *data;
    dlpack_device device;
    int32_t ndim;
    dlpack_dtype dtype;
    int64_t *shape, *strides; /* strides in elements; NULL is row-major */
    uint64_t byte_offset;
} dlpack_tensor;

/* In capsules named "dltensor". */
typedef struct dlpack_managed {
    dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_managed *self);
} dlpack_managed;

typedef struct {
    uint32_t major, minor;
} dlpack_version;

/* In capsules named "dltensor_versioned". */
typedef struct dlpack_versioned {
    dlpack_version version;
    void *context;
    void (*deleter)(struct dlpack_versioned *self);
    uint64_t flags;
    dlpack_tensor tensor;
} dlpack_versioned;

/* In a capsule named "dlpack_exchange_api", the attribute __dlpack_c_exchange_api__ of a type. */
typedef struct dlpack_exchange {
    dlpack_version version;
    struct dlpack_exchange *previous;
    int (*allocate)(dlpack_tensor *prototype, dlpack_versioned **out, void *error_context,
                    void (*set_error)(void *error_context, const char *kind, const char *message));
    int (*from_object)(void *object, dlpack_versioned **out);
    int (*to_object)(dlpack_versioned *tensor, void **object); /* steals the tensor */
    int (*borrow)(void *object, dlpack_tensor *out); /* may be NULL; valid while the object is */
    int (*current_stream)(int32_t device_type, int32_t device_id, void **stream);
} dlpack_exchange;

#endif
