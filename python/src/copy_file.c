/* Copying a small file through memory of the caller, who looks at the bytes afterwards. Pyramids
 * are made of many such files; call by call, threads would spend as long on the interpreter's lock
 * as on the files. Where the file system can (XFS, btrfs), both files share their blocks on the
 * disk. */
#include "functions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/fs.h>
#include <sys/ioctl.h>
#endif

/* All of a file; its size, or more than `room` if it does not fit and nothing is read. -1 with
 * errno. */
static Py_ssize_t read_file(int fd, char *to, Py_ssize_t room)
{
    struct stat status;
    Py_ssize_t size = fstat(fd, &status) ? -1 : (Py_ssize_t)status.st_size, done = 0;
    while (size <= room && done < size) {
        ssize_t count = read(fd, to + done, (size_t)(size - done));
        if (count > 0)
            done += count;
        else if (count == 0)
            size = done; /* It was cut short. */
        else if (errno != EINTR)
            size = -1;
    }
    return size;
}

/* How many bytes, up to `size`, a new file has by sharing the blocks of another. -1 with errno. */
static Py_ssize_t share_blocks(int fd, int source, Py_ssize_t size)
{
#ifdef FICLONE
    struct stat status;
    if (!ioctl(fd, FICLONE, source) && !fstat(fd, &status)) {
        if (status.st_size > size) /* The source has grown. */
            return ftruncate(fd, size) ? -1 : size;
        return (Py_ssize_t)status.st_size;
    }
#else
    (void)fd, (void)source, (void)size;
#endif
    return 0;
}

/* A new file under a name of its own, that takes its place when it is whole: `size` bytes, which
 * those of the source were. */
static int write_file(const char *temporary, const char *path, int source, const char *from,
                      Py_ssize_t size)
{
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), error = 0;
    if (fd < 0)
        return -1;
    Py_ssize_t done = share_blocks(fd, source, size);
    if (done < 0)
        error = errno;
    while (done < size && !error) {
        ssize_t count = pwrite(fd, from + done, (size_t)(size - done), done);
        if (count >= 0)
            done += count;
        else if (errno != EINTR)
            error = errno;
    }
    if (close(fd) && !error)
        error = errno;
    if (!error && rename(temporary, path))
        error = errno;
    if (error)
        unlink(temporary);
    errno = error;
    return error ? -1 : 0;
}

/* copy_file(source, temporary, path, memory): the size of the source, and of what is written if it
 * fits the memory; an empty file is not written. OSError names the source or the path. */
PyObject *copy_file(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *name[3] = {NULL};
    Py_buffer memory;
    if (!PyArg_ParseTuple(args, "O&O&O&w*", PyUnicode_FSConverter, &name[0], PyUnicode_FSConverter,
                          &name[1], PyUnicode_FSConverter, &name[2], &memory))
        return NULL;
    const char *path[3];
    for (int i = 0; i < 3; i++)
        path[i] = PyBytes_AsString(name[i]);
    int failed = -1, error;
    Py_ssize_t size;
    Py_BEGIN_ALLOW_THREADS int source = open(path[0], O_RDONLY | O_CLOEXEC);
    size = source < 0 ? -1 : read_file(source, memory.buf, memory.len);
    if (size < 0)
        failed = 0;
    else if (size > 0 && size <= memory.len &&
             write_file(path[1], path[2], source, memory.buf, size))
        failed = 2;
    error = errno;
    if (source >= 0)
        close(source);
    Py_END_ALLOW_THREADS PyObject *result = NULL;
    errno = error;
    if (failed < 0)
        result = PyLong_FromSsize_t(size);
    else
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, path[failed]);
    PyBuffer_Release(&memory);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(name[i]);
    return result;
}
