"""Small data for every reader: one entry each. `test_every_reader.py` walks `ndd.readers` and finds its data here."""

import functools
import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ndd


@dataclass
class DataSet:
    """How to make data for a reader, such that a sample tells its number in stored order.

    `make(folder, count)` writes `count` records and returns the reader's arguments; `number(outputs)` finds the number
    in the outputs of a sample (NumPy arrays in declared order); `damage(folder, number)` makes one record unreadable,
    and must leave the rest as it was. `dali` is False where DALI cannot read it on a CPU, or has no such reader, and
    `dali_shuffles` where its `shuffle_after_epoch` does nothing; `for_dali(arguments)` makes them such that DALI takes them.
    """

    make: Callable[[Path, int], dict[str, Any]]
    number: Callable[[list[np.ndarray]], int]
    damage: Callable[[Path, int], None]
    dali: bool = True
    dali_shuffles: bool = True
    for_dali: Callable[[dict[str, Any]], dict[str, Any]] = dict


def files(folder, count):
    paths = [folder / f"{i:03}.bin" for i in range(count)]
    for i, path in enumerate(paths):
        path.write_bytes(bytes([i] * (i + 1)))
    return {"files": [str(path) for path in paths]}


def recordio_item(payload, labels=(1.0,), kind=0):
    """One record as MXNet writes it; a single label stands in the header."""
    flag, label = (0, labels[0]) if len(labels) == 1 else (len(labels), 0.0)
    data = struct.pack("<IfQQ", flag, label, 0, 0)
    data += b"" if flag == 0 else struct.pack(f"<{flag}f", *labels)
    return recordio_part(data + payload, kind)


def recordio_part(data, kind):
    return struct.pack("<II", 0xCED7230A, kind << 29 | len(data)) + data + b"\0" * (-len(data) % 4)


def write_recordio(folder, items, name="a"):
    """The files `name.rec` and `name.idx` as arguments of `readers.MXNet`."""
    offsets = np.cumsum([0, *map(len, items)])[:-1]
    (folder / f"{name}.rec").write_bytes(b"".join(items))
    (folder / f"{name}.idx").write_text("".join(f"{i}\t{offset}\n" for i, offset in enumerate(offsets)))
    return {"path": str(folder / f"{name}.rec"), "index_path": str(folder / f"{name}.idx")}


def recordio(folder, count):
    return write_recordio(folder, [recordio_item(b"x" * i, [float(i)] * (1 + i % 3)) for i in range(count)])


def damage_recordio(folder, number):
    offset = int((folder / "a.idx").read_text().splitlines()[number].split()[1])
    with open(folder / "a.rec", "r+b") as file:
        file.seek(offset)
        file.write(b"????")


def recordings(folder, count):
    lines = []
    for i in range(count):
        header = struct.pack(
            "<4sI4s4sIHHIIHH4sI",
            b"RIFF",
            38 + 2 * i,
            b"WAVE",
            b"fmt ",
            16,
            1,
            1,
            8000,
            16000,
            2,
            16,
            b"data",
            2 * i + 2,
        )
        (folder / f"{i:03}.wav").write_bytes(header + np.full(i + 1, i, np.int16).tobytes())
        lines.append(json.dumps({"audio_filepath": str(folder / f"{i:03}.wav"), "text": str(i)}))
    (folder / "all.json").write_text("\n".join(lines))
    return {"manifest_filepaths": str(folder / "all.json")}


def arrays(folder, count):
    for i in range(count):
        np.save(folder / f"{i:03}.npy", np.full((2, i + 1), i, np.int16))
    return {"file_root": str(folder)}


def varint(number):
    """A number as protobuf writes it; negative ones as their 64 bits."""
    number, result = number & 2**64 - 1, b""
    while number > 127:
        result, number = result + bytes([number & 127 | 128]), number >> 7
    return result + bytes([number])


def proto(number, data, wire=2):
    """A field of a protobuf message; `wire` 2 with its length before it."""
    return varint(number << 3 | wire) + (varint(len(data)) if wire == 2 else b"") + data


def bytes_list(*values):
    return proto(1, b"".join(proto(1, value) for value in values))


def float_list(*values):
    return proto(2, proto(1, struct.pack(f"<{len(values)}f", *values)))


def int64_list(*values):
    return proto(3, proto(1, b"".join(map(varint, values))))


def example(*entries):
    """A `tf.train.Example` of (name, feature) pairs."""
    return proto(1, b"".join(proto(1, proto(1, name.encode()) + proto(2, feature)) for name, feature in entries))


def masked_crc(data):
    """CRC-32C bit by bit, masked as in TFRecord files."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


def tfrecord_frame(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def write_tfrecord(folder, records, name="a"):
    """The file `name` and its index as arguments of `readers.TFRecord`."""
    frames = [tfrecord_frame(record) for record in records]
    offsets = np.cumsum([0, *map(len, frames)])
    (folder / name).write_bytes(b"".join(frames))
    lines = [f"{offset} {len(frame)}\n" for offset, frame in zip(offsets[:-1], frames, strict=True)]
    (folder / f"{name}.idx").write_text("".join(lines))
    return {"path": str(folder / name), "index_path": str(folder / f"{name}.idx")}


class Features(dict):
    """Features of `ndd.tfrecord` as (kind, shape, type, default), made anew for DALI, which has objects of its own."""

    def of(self, tfrec):
        return {
            name: tfrec.FixedLenFeature(shape, int(kind), default)
            if fixed
            else tfrec.VarLenFeature(shape, int(kind), default)
            for name, (fixed, shape, kind, default) in self.items()
        }


FEATURES = Features(number=(True, [1], 0, 0), data=(True, (), 1, ""))


def tfrecords(folder, count):
    from ndd import tfrecord

    records = [example(("data", bytes_list(b"x" * i)), ("number", int64_list(i))) for i in range(count)]
    return {**write_tfrecord(folder, records), "features": FEATURES.of(tfrecord)}


def damage_tfrecord(folder, number):
    offset = int((folder / "a.idx").read_text().splitlines()[number].split()[0])
    with open(folder / "a", "r+b") as file:
        file.seek(offset)
        file.write(b"????")


def write_tar(path, members, **how):
    """A tar of (name, bytes) pairs, or of `tarfile.TarInfo`s."""
    with tarfile.open(path, "w", **{"format": tarfile.USTAR_FORMAT, **how}) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            tar.addfile(info, io.BytesIO(member[1]))
    return path


def tars(folder, count):
    half = count // 2
    for name, numbers in (("a", range(half)), ("b", range(half, count))):
        members = [
            (f"{i:03}.{ext}", data) for i in numbers for ext, data in (("bin", b"x" * i), ("cls", str(i).encode()))
        ]
        write_tar(folder / f"{name}.tar", members)
    return {"paths": [str(folder / f"{name}.tar") for name in ("ab" if half else "b")], "ext": ["cls", "bin"]}


def damage_tar(folder, number):
    with tarfile.open(folder / "a.tar") as tar:
        offset = tar.getmembers()[2 * number + 1].offset
    with open(folder / "a.tar", "r+b") as file:
        file.seek(offset)
        file.write(b"?" * 512)


def dali_features(arguments):
    from nvidia.dali import tfrecord

    return {**arguments, "features": FEATURES.of(tfrecord)}


def write_coco(folder, images, annotations=(), categories=({"id": 1}, {"id": 5}), write_files=True, **more):
    """`instances.json` and the image files, whose bytes are their names, as arguments of `readers.COCO`."""
    document = {"images": images, "annotations": list(annotations), "categories": list(categories), **more}
    (folder / "instances.json").write_text(json.dumps({k: v for k, v in document.items() if v is not None}))
    for image in images if write_files else ():
        (folder / image["file_name"]).parent.mkdir(parents=True, exist_ok=True)
        (folder / image["file_name"]).write_bytes(image["file_name"].encode())
    return {"file_root": str(folder), "annotations_file": str(folder / "instances.json")}


def objects(folder, count):
    """Image i has id 10 + i and 1 + i % 3 objects, the box of the first begins at i; the file is not in order."""
    images = [{"id": 10 + i, "file_name": f"{i:03}.jpg", "height": 8, "width": 9} for i in range(count)][::-1]
    boxes = [(i, k) for i in range(count) for k in range(1 + i % 3)]
    annotations = [
        {"id": n, "image_id": 10 + i, "category_id": 5, "bbox": [i + k, 0, 1, 2], "segmentation": [[0, 0, 5, 0, 5, 5]]}
        for n, (i, k) in enumerate(boxes)
    ]
    return {**write_coco(folder, images, annotations), "image_ids": True}


def field(number, value):
    """A field of a protobuf message: a number, or bytes."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def datum(data, label):
    """A record of Caffe."""
    return field(1, 3) + field(4, data) + field(5, label) + field(7, 1)


def tensor(kind, shape, floats=(), integers=(), pixels=None, texts=(), packed=True):
    """One of the tensors of a record of Caffe2."""
    result = b"".join(field(1, extent) for extent in shape) + (b"" if kind is None else field(2, kind))
    if packed:
        result += field(3, np.array(floats, "<f4").tobytes()) + field(4, b"".join(map(varint, integers)))
    else:
        result += b"".join(varint(3 << 3 | 5) + np.float32(value).tobytes() for value in floats)
        result += b"".join(field(4, value) for value in integers)
    result += b"" if pixels is None else field(5, pixels)
    return field(1, result + b"".join(field(6, text) for text in texts))


def write_lmdb(folder, records, keys=None, deleted=0):
    """An LMDB of these records, under keys in their order; `deleted` of the last ones are deleted again."""
    import lmdb

    keys = [b"%08d" % i for i in range(len(records))] if keys is None else keys
    with lmdb.open(str(folder), map_size=1 << 26, sync=False) as environment:
        with environment.begin(write=True) as transaction:
            for key, record in zip(keys, records, strict=True):
                transaction.put(key, record)
        with environment.begin(write=True) as transaction:
            for key in keys[len(keys) - deleted :]:
                transaction.delete(key)
    return str(folder)


def datums(folder, count):
    return {"path": write_lmdb(folder, [datum(b"x" * 700 * (i % 4), i) for i in range(count)])}


def tensors(folder, count):
    records = [tensor(4, [1], texts=[b"x" * i]) + tensor(2, [1], integers=[i]) for i in range(count)]
    return {"path": write_lmdb(folder, records)}


def damage_lmdb(folder, number):
    """Rubs out the key of a record, which stands before it."""
    path = folder / "data.mdb"
    content = path.read_bytes()
    key = b"%08d" % number
    path.write_bytes(content.replace(key, b"\xff" * 8).replace(b"\x08\0" + b"\xff" * 8, b"\x09\0" + b"\xff" * 8))


def fits_images(folder, count):
    from astropy.io import fits

    for i in range(count):
        image = fits.ImageHDU(np.full((2, i + 1), i, np.int16))
        fits.HDUList([fits.PrimaryHDU(), image]).writeto(folder / f"{i:03}.fits")
    return {"file_root": str(folder)}


@functools.cache
def clip(first, codec, ending):
    import videos

    return ndd.io.video.encode(videos.numbered(first + 4)[first:], codec=codec, format=ending, quality=10).tobytes()


def clips(folder, count, codec="libx264", ending="mp4", **more):
    """Files of one sequence each: the frames 4 * i to 4 * i + 3 of a numbered video."""
    paths = [folder / f"{i:03}.{ending}" for i in range(count)]
    for i, path in enumerate(paths):
        path.write_bytes(clip(4 * i, codec, ending))
    return {"filenames": [str(path) for path in paths], "sequence_length": 4, **more}


def clip_number(outputs):
    import videos

    first, *others = videos.numbers_of(outputs[0])
    assert others == [first + 1, first + 2, first + 3]
    return first // 4


def parquet(folder, count):
    """Row groups of two rows."""
    import pyarrow as pa
    from pyarrow import parquet

    pictures = [{"bytes": b"x" * i, "path": f"{i}.jpg"} for i in range(count)]
    table = pa.table({"image": pictures, "label": range(count), "caption": [f"number {i}" for i in range(count)]})
    parquet.write_table(table, folder / "a.parquet", row_group_size=2)
    return {"path": str(folder), "columns": ["image", "label", "caption"]}


def damage_parquet(folder, number):
    from pyarrow import parquet

    group = parquet.read_metadata(folder / "a.parquet").row_group(number // 2)
    overwrite(folder / "a.parquet", group.column(0).data_page_offset, b"\xff" * 16)


def overwrite(path, offset, content):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(content)


def arrow_stream(folder, count):
    """Record batches of two rows."""
    import pyarrow as pa

    table = pa.table({"image": [b"x" * i for i in range(count)], "label": range(count)})
    with pa.OSFile(str(folder / "data.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table, max_chunksize=2)
    return {"dataset": str(folder), "columns": ["image", "label"]}


def damage_arrow(folder, number):
    from ndd.readers.formats.arrow_file import record_batches

    path = folder / "data.arrow"
    overwrite(path, int(record_batches(str(path), {})["offset"][number // 2]) + 8, b"\xff" * 24)


def shard_of(samples, between=b""):
    """A shard of MDS, whose description stands `between`, or a chunk of LitData: count, offsets, samples."""
    first = 4 * (len(samples) + 2) + len(between)
    offsets = np.cumsum([first, *map(len, samples)]).tolist()
    return struct.pack(f"<{len(samples) + 2}I", len(samples), *offsets) + between + b"".join(samples)


MDS_COLUMNS = {"caption": ("str", None), "image": ("jpeg", None), "label": ("int", 8)}


def write_mds(folder, shards, columns):
    """Shards of samples that are dicts of bytes."""
    fixed = [size for _, size in columns.values()]
    described = []
    for k, samples in enumerate(shards):
        whole = [
            b"".join(
                struct.pack("<I", len(sample[name])) for name, size in zip(columns, fixed, strict=True) if size is None
            )
            + b"".join(sample[name] for name in columns)
            for sample in samples
        ]
        content = shard_of(whole, b"{}")
        (folder / f"shard.{k:05}.mds").write_bytes(content)
        described.append({
            "column_names": list(columns), "column_encodings": [kind for kind, _ in columns.values()],
            "column_sizes": fixed, "compression": None, "format": "mds", "hashes": [], "samples": len(samples),
            "raw_data": {"basename": f"shard.{k:05}.mds", "bytes": len(content), "hashes": {}}, "size_limit": 1 << 26,
            "version": 2, "zip_data": None,
        })  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"shards": described, "version": 2}))
    return {"path": str(folder), "columns": list(columns)[::-1]}


def mds(folder, count):
    samples = [
        {"caption": f"number {i}".encode(), "image": b"x" * i, "label": struct.pack("<q", i)} for i in range(count)
    ]
    return write_mds(folder, [samples[: count // 2], samples[count // 2 :]], MDS_COLUMNS)


def damage_shard(folder, name, number):
    """Gives a sample of a shard impossible sizes."""
    content = (folder / name).read_bytes()
    overwrite(folder / name, struct.unpack_from("<I", content, 4 + 4 * number)[0], b"\xff" * 4)


def write_litdata(folder, chunks, leaves):
    """Chunks of samples that are dicts of bytes; `leaves` are the names and types."""
    described = []
    for k, samples in enumerate(chunks):
        whole = [
            struct.pack(f"<{len(leaves)}I", *(len(sample[name]) for name in leaves))
            + b"".join(sample[name] for name in leaves)
            for sample in samples
        ]
        content = shard_of(whole)
        (folder / f"chunk-0-{k}.bin").write_bytes(content)
        described.append(
            {"chunk_bytes": len(content), "chunk_size": len(samples), "dim": None, "filename": f"chunk-0-{k}.bin"}
        )
    leaf = {"type": None, "context": None, "children_spec": []}
    spec = {"type": "builtins.dict", "context": json.dumps(list(leaves)), "children_spec": [leaf] * len(leaves)}
    config = {
        "chunk_bytes": None, "chunk_size": 4, "compression": None, "data_format": list(leaves.values()),
        "data_spec": json.dumps([1, spec]), "encryption": None, "item_loader": "PyTreeLoader",
    }  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"chunks": described, "config": config, "updated_at": "0"}))
    return {"path": str(folder), "columns": list(leaves)}


def litdata(folder, count):
    samples = [{"image": b"x" * i, "label": struct.pack("<q", i), "caption": b"c%d" % i} for i in range(count)]
    leaves = {"image": "bytes", "label": "int", "caption": "str"}
    return write_litdata(folder, [samples[: count // 2], samples[count // 2 :]], leaves)


def table(folder, count):
    paths = files(folder, count)["files"]
    return {"data": {"path": paths, "label": list(range(count)), "caption": list(map(str, range(count)))},
            "columns": ["path", "label", "caption"]}  # fmt: skip


def zips(folder, count):
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        for i in range(count):
            archive.writestr(f"class/{i:03}.jpg", bytes([i] * (i + 1)), zipfile.ZIP_DEFLATED if i % 2 else None)
    return {"path": str(folder / "a.zip")}


def damage_zip(folder, number):
    with zipfile.ZipFile(folder / "a.zip") as archive:
        offset = archive.infolist()[number].header_offset
    overwrite(folder / "a.zip", offset, b"????")


DATASETS = {
    "COCO": DataSet(
        objects, lambda outputs: int(outputs[1][0, 0]), lambda folder, n: (folder / f"{n:03}.jpg").unlink()
    ),
    "Caffe": DataSet(datums, lambda outputs: int(outputs[1][0]), damage_lmdb),
    "Caffe2": DataSet(tensors, lambda outputs: int(outputs[1][0]), damage_lmdb),
    "File": DataSet(files, lambda outputs: int(outputs[1][0]), lambda folder, n: (folder / f"{n:03}.bin").unlink()),
    "Fits": DataSet(
        fits_images,
        lambda outputs: int(outputs[0][0, 0]),
        lambda folder, n: (folder / f"{n:03}.fits").write_bytes(b"?"),
        dali=False,
    ),
    "HuggingFace": DataSet(arrow_stream, lambda outputs: int(outputs[1][0]), damage_arrow, dali=False),
    "LitData": DataSet(
        litdata,
        lambda outputs: int(outputs[1][0]),
        lambda folder, n: damage_shard(folder, "chunk-0-0.bin", n),
        dali=False,
    ),
    "MDS": DataSet(
        mds,
        lambda outputs: int(outputs[0][0]),
        lambda folder, n: damage_shard(folder, "shard.00000.mds", n),
        dali=False,
    ),
    "MXNet": DataSet(recordio, lambda outputs: int(outputs[1][0]), damage_recordio, dali_shuffles=False),
    "NemoAsr": DataSet(
        recordings, lambda outputs: int(bytes(outputs[2])), lambda folder, n: (folder / f"{n:03}.wav").write_bytes(b"?")
    ),
    "Numpy": DataSet(
        arrays, lambda outputs: int(outputs[0][0, 0]), lambda folder, n: (folder / f"{n:03}.npy").write_bytes(b"?")
    ),
    "Mix": DataSet(
        lambda folder, count: {"readers": [ndd.readers.File(**files(folder, count))]},
        lambda outputs: int(outputs[1][0]),
        lambda folder, n: (folder / f"{n:03}.bin").unlink(),
        dali=False,
    ),
    "Parquet": DataSet(parquet, lambda outputs: int(outputs[1][0]), damage_parquet, dali=False),
    "TFRecord": DataSet(
        tfrecords, lambda outputs: int(outputs[0][0]), damage_tfrecord, dali_shuffles=False, for_dali=dali_features
    ),
    "Table": DataSet(
        table, lambda outputs: int(outputs[1][0]), lambda folder, n: (folder / f"{n:03}.bin").unlink(), dali=False
    ),
    "Video": DataSet(clips, clip_number, lambda folder, n: (folder / f"{n:03}.mp4").write_bytes(b"?"), dali=False),
    "VideoResize": DataSet(
        functools.partial(clips, resize_x=80.0, resize_y=48.0, interp_type=ndd.types.INTERP_NN, enable_timestamps=True),
        clip_number,
        lambda folder, n: (folder / f"{n:03}.mp4").write_bytes(b"?"),
        dali=False,
    ),
    "experimental.Video": DataSet(
        functools.partial(clips, codec="libvpx", ending="webm", enable_frame_num="sequence"),
        clip_number,
        lambda folder, n: (folder / f"{n:03}.webm").write_bytes(b"?"),
    ),
    "Webdataset": DataSet(tars, lambda outputs: int(bytes(outputs[0])), damage_tar, dali_shuffles=False),
    "Zip": DataSet(zips, lambda outputs: int(outputs[0][0]), damage_zip, dali=False),
}
