"""Everybody who makes pyramids, each as one function: a zarr array in, the levels of its means out.

usage: contenders.py NAME SOURCE OUT LEVELS [cold]     prints seconds, processor seconds and peak memory, as JSON

`cold`: nothing of the input is in memory as the clock starts, and all of the output is on the disk as it stops.
What is imported is imported before the clock starts. Outputs are zarr with the codec, the chunks and, if there are
any and the contender knows them, the shards of the source; factor 2 on every axis; `LEVELS` counts the full resolution.
"""

import json
import os
import resource
import shutil
import sys
import time

MEMORY = "1G"  # for tarn; the others have no such option


def tarn_in(workers):
    def make():
        import tarn.pyramid

        def write(source, out, levels):
            tarn.pyramid.write(source, out, factor=2, levels=levels, workers=workers, memory=MEMORY)
        return write
    return make


def layout_of(source):
    """Chunks and codec of the source, as zarr's create_array() takes them."""
    import zarr
    array = zarr.open_array(source, mode="r")
    compressors = array.compressors or None
    return {"chunks": array.chunks, "compressors": compressors} | ({"shards": array.shards} if array.shards else {})


def clipped(layout, shape):
    """The layout for a level of this shape: a chunk is no longer than the axis."""
    chunks = [min(c, n) for c, n in zip(layout["chunks"], shape)]
    shards = [max(c, min(s, -(-n // c) * c)) // c * c for s, c, n in zip(layout.get("shards", ()), chunks, shape)]
    return layout | {"chunks": tuple(chunks)} | ({"shards": tuple(shards)} if shards else {})


def rounded(x, dtype):
    """Means as the dtype of the source has them."""
    return x.round().astype(dtype) if dtype.kind in "iu" else x.astype(dtype)


def cp():
    import subprocess

    def write(source, out, levels):
        subprocess.run(["cp", "-r", source, out], check=True)
    return write


def ome_zarr(method):
    def make():
        import dask.array
        import zarr
        from ome_zarr.scale import Methods
        from ome_zarr.writer import write_image

        def write(source, out, levels):
            image = dask.array.from_zarr(source)
            factors = [{"z": 2**k, "y": 2**k, "x": 2**k} for k in range(1, levels)]
            write_image(image, zarr.open_group(out, mode="w"), scale_factors=factors, axes="zyx",
                        method=Methods(method), storage_options=layout_of(source))
        return write
    return make


def ngff_zarr(method):
    def make():
        import dask.array
        import ngff_zarr

        def write(source, out, levels):
            layout = layout_of(source)
            image = ngff_zarr.to_ngff_image(dask.array.from_zarr(source), dims=("z", "y", "x"))
            scales = ngff_zarr.to_multiscales(image, [2**k for k in range(1, levels)],
                                              ngff_zarr.Methods(method), chunks=layout["chunks"])
            shards = [s // c for s, c in zip(layout.get("shards", ()), layout["chunks"])]
            more = {"chunks_per_shard": dict(zip("zyx", shards))} if shards else {}
            ngff_zarr.to_ngff_zarr(out, scales, version="0.5", compressors=layout["compressors"], **more)
        return write
    return make


def tensorstore():
    import tensorstore as ts

    def spec(path, **more):
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}, **more}

    def write(source, out, levels):
        below = ts.open(spec(source)).result()
        with open(os.path.join(source, "zarr.json"), encoding="utf-8") as file:
            facts = json.load(file)
        for level in range(levels):
            read = ts.downsample(below, [2, 2, 2], "mean") if level else below
            level_out = ts.open(spec(os.path.join(out, str(level)), create=True, metadata={
                **{key: facts[key] for key in ("data_type", "chunk_grid", "codecs")},
                "shape": list(read.shape)})).result()
            level_out.write(read).result()
            below = level_out
    return write


def dask_coarsen():
    import dask.array
    import numpy
    import zarr

    def write(source, out, levels):
        below, layout = source, layout_of(source)
        unit = layout.get("shards", layout["chunks"])
        for level in range(levels):
            x = dask.array.from_zarr(below, chunks=unit)
            if level:
                x = rounded(dask.array.coarsen(numpy.mean, x, {0: 2, 1: 2, 2: 2}, trim_excess=True), x.dtype)
                x = x.rechunk(unit)
            below = os.path.join(out, str(level))
            made = zarr.create_array(below, shape=x.shape, dtype=x.dtype, **clipped(layout, x.shape))
            dask.array.store(x, made, lock=False)
    return write


def xarray_coarsen():
    import xarray

    def write(source, out, levels):
        import dask.array
        below, layout = source, layout_of(source)
        unit = layout.get("shards", layout["chunks"])
        for level in range(levels):
            x = xarray.DataArray(dask.array.from_zarr(below, chunks=unit), dims=("z", "y", "x"), name="x")
            if level:
                x = rounded(x.coarsen(z=2, y=2, x=2, boundary="trim").mean(), x.dtype)
                x = x.chunk(dict(zip("zyx", unit)))
            folder = os.path.join(out, str(level))
            x.to_dataset().to_zarr(folder, zarr_format=3, consolidated=False, encoding={"x": clipped(layout, x.shape)})
            below = os.path.join(folder, "x")
    return write


def whole(shrink):
    """Contenders that want the whole array in memory."""
    def write(source, out, levels):
        import zarr
        x, layout = zarr.open_array(source, mode="r")[...], layout_of(source)
        for level in range(levels):
            x = rounded(shrink(x), x.dtype) if level else x
            made = zarr.create_array(os.path.join(out, str(level)), shape=x.shape, dtype=x.dtype,
                                     **clipped(layout, x.shape))
            made[...] = x
    return write


def tinybrain():
    import numpy
    import tinybrain
    return whole(lambda x: numpy.ascontiguousarray(tinybrain.downsample_with_averaging(
        numpy.asfortranarray(x), (2, 2, 2), num_mips=1)[0].reshape([n // 2 for n in x.shape])))


def scikit_image():
    from skimage.transform import downscale_local_mean
    return whole(lambda x: downscale_local_mean(x, (2, 2, 2)))


CONTENDERS = {
    "cp": cp, "tarn 1 worker": tarn_in(1), "tarn 2 workers": tarn_in(2),
    "tensorstore": tensorstore, "ome-zarr local_mean": ome_zarr("local_mean"),
    "ome-zarr resize": ome_zarr("resize"), "ngff-zarr bin_shrink": ngff_zarr("dask_bin_shrink"),
    "dask coarsen": dask_coarsen, "xarray coarsen": xarray_coarsen,
    "tinybrain": tinybrain, "scikit-image": scikit_image,
}


def sync(folder, forget=False):
    """Waits until the disk has all files of a folder, and perhaps lets the cache forget them."""
    for where, _, names in os.walk(folder):
        for name in names:
            fd = os.open(os.path.join(where, name), os.O_RDONLY)
            os.fsync(fd)
            if forget:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def main(name, source, out, levels, cold=""):
    import zarr  # noqa: F401, everybody's input
    write = CONTENDERS[name]()
    shutil.rmtree(out, ignore_errors=True)
    if cold:
        sync(source, forget=True)
    began, used = time.perf_counter(), sum(os.times()[:4])
    write(source, out, int(levels))
    if cold:
        sync(out)
    seconds, used = time.perf_counter() - began, sum(os.times()[:4]) - used
    with open("/proc/self/status", encoding="ascii") as file:
        own = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps({"seconds": seconds, "cpu": used, "peak_kb": max(own, workers)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
