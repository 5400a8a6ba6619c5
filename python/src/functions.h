/* The functions of the module. */
#ifndef TARN_PYTHON_FUNCTIONS_H
#define TARN_PYTHON_FUNCTIONS_H

#include "module.h"

extern PyMethodDef functions[];

#endif
