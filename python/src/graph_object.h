/* tarn.Graph: tarn_graph.h with Python's arrays. */
#ifndef TARN_PYTHON_GRAPH_OBJECT_H
#define TARN_PYTHON_GRAPH_OBJECT_H

#include "module.h"

extern PyType_Spec graph_spec;

#endif
