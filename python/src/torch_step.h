/* PyTorch's tensors in eager mode: forward and backward without its dispatcher. */
#ifndef TARN_PYTHON_TORCH_STEP_H
#define TARN_PYTHON_TORCH_STEP_H

#include "pooling.h"

#include "../tarn/torch_native.h"

/* A pool between its forward and its backward: the node of autograd keeps it. */
typedef struct {
    PyObject ob_base;
    tarn_pool pool;
    frame frame;
    tarn_pass pass;   /* of the forward */
    plan_entry *plan; /* NULL before the forward */
    module_state *state;
} step_object;

extern PyType_Spec step_spec;

/* The gradient for what the step's node saved (NULL: nothing), by the registered operators. */
PyObject *step_by_operators(PyObject *step, PyObject *saved, PyObject *gy);

/* A capsule of the functions that the compiled step calls. (torch_native.c) */
PyObject *torch_core_table(PyObject *module, PyObject *unused);
void torch_remember_process(void);

/* The functions of the module, as METH_FASTCALL has them; see torch_step.c. */
PyObject *torch_setup(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *torch_connect(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *torch_is_plain(PyObject *module, PyObject *x);
PyObject *torch_sliding(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *torch_adaptive(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *torch_pool(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *torch_forward(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *torch_backward(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* How many threads PyTorch would use; 0 if the object is not a tensor of its, or it does not
 * say. */
int torch_threads(const module_state *state, PyObject *object);

int torch_traverse(const module_state *state, visitproc visit, void *arg);
void torch_clear(module_state *state);

#endif
