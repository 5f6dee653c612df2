"""Trains and asks one peer; `run.mjs` calls it. Training and asking are processes of their own, as they are for us.

    peers.py versions --result R.json
    peers.py train   SYSTEM --x X.npz --y Y.npz --text T.txt --model DIR --threads N --seed N --result R.json
    peers.py predict SYSTEM --x X.npz --model DIR --out A.i32 --k N --beam N --threads N
                     --repeat N --queries N --rounds N --result R.json

Results go to a file, as some peers print to the standard output. Every peer runs with the parameters that it has when
it is told nothing, except where its name here says otherwise; seed, threads, k and beam are told to all who take them.
"""

import argparse
import gc
import importlib.metadata
import json
import os
import platform
import resource
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor


def peak_bytes():
    """The largest memory of this process. Linux's ru_maxrss would also count the parent's."""
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def read(path):
    import numpy as np
    import scipy.sparse as sp

    matrix = sp.load_npz(path).tocsr().astype(np.float32)
    matrix.sort_indices()
    return matrix


def folder_bytes(path):
    return sum(os.path.getsize(os.path.join(base, name)) for base, _, names in os.walk(path) for name in names)


def ranked_rows(scores):
    """The labels of each row of a CSR matrix of scores, best first, ties by label."""
    import numpy as np

    rows = []
    for start, end in zip(scores.indptr[:-1], scores.indptr[1:]):
        labels, values = scores.indices[start:end], scores.data[start:end]
        rows.append(labels[np.lexsort((labels, -values))])
    return rows


class Pecos:
    def train(self, o, clock):
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        x, y = read(o.x), read(o.y)
        clock.start()
        vectors = LabelEmbeddingFactory.create(y, x, method="pifa")
        chain = Indexer.gen(vectors, seed=o.seed, threads=o.threads)
        model = XLinearModel.train(x, y, chain, threads=o.threads)
        clock.stop()
        model.save(o.model)

    def open(self, o):
        from pecos.xmc.xlinear.model import XLinearModel

        self.model, self.o = XLinearModel.load(o.model, is_predict_only=True), o

    def batch(self, x):
        o = self.o
        return self.model.predict(x, beam_size=o.beam, only_topk=o.k, threads=o.threads)

    def labels(self, answer):
        return ranked_rows(answer)

    def query(self, x, i):
        return x[i]

    def ask(self, query):
        self.model.predict(query, beam_size=self.o.beam, only_topk=self.o.k, threads=1)


class Omikuji:
    trees = None

    def train(self, o, clock):
        import omikuji

        parameters = omikuji.Model.default_hyper_param()
        if self.trees:
            parameters.n_trees = self.trees
        # Its one public call reads the text file and trains; only the training is to be timed.
        lib, ffi = omikuji.lib, omikuji.ffi
        pool = omikuji._ThreadPoolHandle(o.threads)
        data = lib.load_omikuji_data_set(ffi.new("char[]", o.text.encode()), pool.ptr)
        if data == ffi.NULL:
            raise RuntimeError("omikuji cannot read " + o.text)
        data = ffi.gc(data, lib.free_omikuji_data_set)
        clock.start()
        trained = lib.train_omikuji_model(data, parameters, pool.ptr)
        clock.stop()
        if trained == ffi.NULL:
            raise RuntimeError("omikuji cannot train")
        omikuji.Model(trained).save(o.model)

    def open(self, o):
        import omikuji

        self.model, self.o = omikuji.Model.load(o.model), o
        self.model.init_prediction_thread_pool(1)
        self.omikuji = omikuji

    def batch(self, x):
        """It has no call for many rows: its engine's own call, on the arrays as they are, from several threads."""
        import numpy as np

        lib, ffi, o = self.omikuji.lib, self.omikuji.ffi, self.o
        indices, values = x.indices.astype(np.uint32), x.data
        top = np.full((x.shape[0], o.k), -1, np.int64)
        pool = self.omikuji._ThreadPoolHandle(o.threads).ptr
        model = self.model._model_ptr

        def some(first, last):
            labels, scores = ffi.new("uint32_t[]", o.k), ffi.new("float[]", o.k)
            for i in range(first, last):
                a, b = x.indptr[i], x.indptr[i + 1]
                found = lib.omikuji_predict(
                    model, o.beam, b - a,
                    ffi.from_buffer("uint32_t[]", indices[a:b]), ffi.from_buffer("float[]", values[a:b]),
                    o.k, labels, scores, pool,
                )  # fmt: skip
                top[i, :found] = ffi.unpack(labels, found)

        cuts = [x.shape[0] * i // o.threads for i in range(o.threads + 1)]
        with ThreadPoolExecutor(o.threads) as executor:
            list(executor.map(some, cuts[:-1], cuts[1:]))
        return top

    def labels(self, answer):
        return [row[row >= 0] for row in answer]

    def query(self, x, i):
        row = x[i]
        return list(zip(row.indices.tolist(), row.data.tolist()))

    def ask(self, query):
        self.model.predict(query, beam_size=self.o.beam, top_k=self.o.k)


class OmikujiOne(Omikuji):
    trees = 1


class Napkin:
    parameters = {}

    def made(self, o, threads):
        from napkinxc.models import PLT

        return PLT(o.model, threads=threads, **self.parameters)

    def train(self, o, clock):
        from napkinxc.models import PLT

        x, y = read(o.x), read(o.y)
        model = PLT(o.model, threads=o.threads, seed=o.seed, **self.parameters)
        clock.start()
        model.fit(x, y)
        clock.stop()

    def open(self, o):
        self.o = o
        self.many, self.one = self.made(o, o.threads), None
        self.many.load()

    def batch(self, x):
        return self.many.predict(x, top_k=self.o.k)

    def labels(self, answer):
        return answer

    def query(self, x, i):
        if self.one is None:
            self.many.unload()
            self.one = self.made(self.o, 1)
            self.one.load()
        return x[i]

    def ask(self, query):
        self.one.predict(query, top_k=self.o.k)


class NapkinHinge(Napkin):
    parameters = dict(loss="squaredHinge", liblinear_c=1)


SYSTEMS = {
    "pecos": Pecos,
    "omikuji": Omikuji,
    "omikuji-1": OmikujiOne,
    "napkinxc": Napkin,
    "napkinxc-hinge": NapkinHinge,
}
PACKAGES = {"pecos": "libpecos", "omikuji": "omikuji", "napkinxc": "napkinxc", "numpy": "numpy", "scipy": "scipy"}


class Clock:
    seconds = None

    def start(self):
        self.began = time.perf_counter()

    def stop(self):
        self.seconds = time.perf_counter() - self.began


def versions():
    found = {"python": platform.python_version()}
    for name, package in PACKAGES.items():
        try:
            found[name] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def train(o):
    clock = Clock()
    os.makedirs(o.model, exist_ok=True)
    SYSTEMS[o.system]().train(o, clock)
    return {
        "trainSeconds": clock.seconds,
        "trainPeakBytes": peak_bytes(),
        "modelBytes": folder_bytes(o.model),
    }


def predict(o):
    import numpy as np

    peer = SYSTEMS[o.system]()
    peer.open(o)
    x = read(o.x)
    best, answer = float("inf"), None
    for _ in range(o.repeat):
        start = time.perf_counter()
        answer = peer.batch(x)
        best = min(best, time.perf_counter() - start)
    table = np.full((x.shape[0], o.k), -1, "<i4")
    for i, labels in enumerate(peer.labels(answer)):
        table[i, : len(labels)] = labels
    table.tofile(o.out)
    peak = peak_bytes()

    # The same rows, rounds and statistics as `aquila bench --single`.
    count = min(o.queries, x.shape[0])
    queries = [peer.query(x, i * x.shape[0] // count) for i in range(count)]
    times = [float("inf")] * count
    gc.disable()
    for query in queries:
        peer.ask(query)
    for _ in range(o.rounds):
        for i, query in enumerate(queries):
            start = time.perf_counter()
            peer.ask(query)
            times[i] = min(times[i], time.perf_counter() - start)
    times.sort()
    return {
        "batchMsPerRow": 1e3 * best / x.shape[0],
        "predictPeakBytes": peak,
        "singleMedianMs": 1e3 * times[min(count - 1, count // 2)],
        "singleP99Ms": 1e3 * times[min(count - 1, int(0.99 * count))],
        "singleMeanMs": 1e3 * statistics.fmean(times),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["versions", "train", "predict"])
    parser.add_argument("system", nargs="?", choices=SYSTEMS)
    for name in ("x", "y", "text", "model", "out", "result"):
        parser.add_argument("--" + name)
    for name, value in dict(k=10, beam=10, threads=2, seed=0, repeat=3, queries=500, rounds=3).items():
        parser.add_argument("--" + name, type=int, default=value)
    o = parser.parse_args()
    result = versions() if o.verb == "versions" else {"train": train, "predict": predict}[o.verb](o)
    with open(o.result, "w") as file:
        json.dump(result, file)


main()
