"""Code that the fault tests share, and a program that forks the processes that they kill.

The tests load the module through `conftest.py`. The program imports slow modules once, then forks a process for each
job that it reads from its input: a line of JSON with the name of a job and its arguments. It has over 400 lines because
it is one program: everything that a fork needs must be loaded before.
"""

import faulthandler
import json
import logging
import mmap  # noqa: F401 (after a change of user, the import could fail)
import os
import random
import signal
import sqlite3
import sys
import time
import traceback
import zlib
from pathlib import Path

import numpy as np

import capr.index.embedded.store
import capr.index.embedded.vectors
import capr.index.embedded.views
import capr.index.embedded.words
import capr.index.embedded.writer
import capr.search.batches
import capr.segment
from capr.annotate import Vocabulary
from capr.annotate.mentions import annotator
from capr.documents import CaprError, Document
from capr.runtime.identity import EncoderIdentity
from capr.search.library import Library

DIMENSIONS = 24
TOPICS = ("aspirin after a heart attack", "a dry cough and fever", "metformin for diabetes", "left knee pain")
HEADINGS = ("HISTORY", "ASSESSMENT", "PLAN", "MEDICATIONS", "ALLERGIES")


# --- documents and vectors, the same in every process ---


def marker(id, version, part):
    """Return a word that occurs in only one passage of one version of one document."""
    return f"mark{id}v{version}p{part}"


def make(id, version):
    """Return a version of a document; every passage contains its version and number."""
    generator = random.Random(zlib.crc32(f"{id} {version}".encode()))
    parts = [
        f"{heading}:\nThis is part {part} of {id} in version {version}, {marker(id, version, part)}. "
        f"It speaks of {generator.choice(TOPICS)}. " + "Nothing else was found on that day. " * generator.randint(0, 12)
        for part, heading in enumerate(HEADINGS[: generator.randint(1, 5)])
    ]
    metadata = {"patient": f"p{id}", "version": version, "date": f"2020-01-{1 + version % 28:02}"}
    return Document(id, "\n\n".join(parts) + "\n" * generator.randint(0, 2), f"Note {id} {version}", metadata)


class FakeEncoder:
    """An encoder that counts words."""

    def __init__(self, name="fake-a"):
        self.identity = EncoderIdentity(name, f"digest of {name}", DIMENSIONS, f"/nowhere/{name}")

    def passages(self, texts):
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                vectors[row, zlib.crc32((self.identity.name + word).encode()) % DIMENSIONS] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)

    def query(self, text):
        return self.passages([text])[0]


class FakeDiscourse:
    """A discourse model that counts the words of a sentence and, with a small weight, of the whole document."""

    identity = EncoderIdentity("fake-cdv", "digest of fake-cdv", DIMENSIONS, "/nowhere/fake-cdv")
    threshold = 0.5

    def sentences(self, document):
        spans = capr.segment.sentences(document.text)
        context = self.query(document.text, document.text)
        rows = [self._normalize(self.query(document[span], document[span]) + 0.2 * context) for span in spans]
        return spans, np.array(rows, np.float32).reshape(-1, DIMENSIONS)

    def query(self, entity, aspect):
        halves = np.zeros((2, DIMENSIONS // 2), np.float32)
        for row, text in enumerate((entity, aspect)):
            for word in text.split():
                halves[row, zlib.crc32(word.lower().encode()) % (DIMENSIONS // 2)] += 1
        return self._normalize(halves.reshape(-1))

    def _normalize(self, vector):
        halves = vector.reshape(2, -1)
        lengths = np.maximum(np.linalg.norm(halves, axis=1, keepdims=True), 1e-12)
        return (halves / lengths / np.sqrt(2)).reshape(-1).astype(np.float32)


def known_models(path):
    """Return the encoder and the discourse model that a library records."""
    try:
        with Library(path, vocabulary=Vocabulary.load()) as library:
            encoder, discourse = map(library.index.encoder, (capr.index.PASSAGES, capr.index.SENTENCES))
    except CaprError:
        return None, None
    return None if encoder is None else FakeEncoder(encoder.name), None if discourse is None else FakeDiscourse()


def open_library(path, encoder=None, discourse=None):
    """Open a library with the models that it records, or else with the arguments."""
    known_encoder, known_discourse = known_models(path)
    models = {"encoder": known_encoder or encoder, "discourse": known_discourse or discourse}
    return Library(path, **models, vocabulary=Vocabulary.load())


def small_batches():
    """Set small batches, so that a library commits often."""
    capr.search.batches.ENCODED = capr.search.batches.PLAIN = 6
    capr.index.embedded.writer.BATCH = 4


# --- changes, and the states that they may leave ---


def plan(seed, size=12, ids=30):
    """Return changes to a library: pairs of an operation and its argument."""
    generator = random.Random(seed)
    changes = [["add", [[f"d{n}", seed * 1000] for n in generator.sample(range(ids), 12)]]]
    for step in range(1, size):
        operation = generator.choices(("add", "remove", "compact", "encode"), (10, 4, 1, 1.5))[0]
        sample = [f"d{n}" for n in generator.sample(range(ids), generator.randint(1, 9))]
        if operation == "add":
            changes.append(["add", [[id, seed * 1000 + step] for id in sample]])
        else:
            arguments = {"remove": sample[:4], "encode": f"fake-{generator.choice('ab')}"}
            changes.append([operation, arguments.get(operation)])
    return changes


def states(changes, lines, possible):
    """Return the versions that each document may have after a process logged these lines; None if it may be missing.

    Args:
        changes: the changes that the process should make.
        lines: the lines that it logged.
        possible: the versions before the changes.
    """
    possible = {id: set(versions) for id, versions in possible.items()}
    for line in lines:
        if "begin" in line:
            operation, argument = changes[line["begin"]]
            for id, version in argument if operation == "add" else ():
                possible.setdefault(id, {None}).add(version)
            for id in argument if operation == "remove" else ():
                possible.setdefault(id, {None}).add(None)
        elif "kept" in line:
            versions = dict(changes[line["of"]][1])
            possible.update({id: {versions[id]} for id in line["kept"]})
        elif "done" in line:
            operation, argument = changes[line["done"]]
            possible.update({id: {version} for id, version in argument} if operation == "add" else {})
            possible.update({id: {None} for id in argument} if operation == "remove" else {})
    return possible


# --- jobs ---


class Log:
    """A log that survives a kill of the process."""

    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self, **line):
        os.write(self._file, json.dumps(line).encode() + b"\n")


def change(log, path, changes, encoder=None, kill=None, checked=None, discourse=False):
    """Make changes; log when each begins, which documents it commits and when it is done."""
    small_batches()
    if checked is not None:
        capr.index.embedded.views.MAX_CHECKED = checked
    if kill:
        kill_at(*kill)
    library = open_library(path, FakeEncoder(encoder) if encoder else None, FakeDiscourse() if discourse else None)
    for number, (operation, argument) in enumerate(changes):
        log(begin=number)
        if operation == "add":
            documents = [make(id, version) for id, version in argument]
            library.add(documents, replace=True, on_commit=lambda ids, of=number: log(kept=list(ids), of=of))
        elif operation == "remove":
            library.remove(argument)
        elif operation == "compact":
            library.compact()
        else:
            library.encode(FakeEncoder(argument))
        log(done=number)
    library.close()


def search(log, path, queries, checked=None):
    """Log the hits of queries, the problems before and after a repair, and the hits after it."""
    if checked is not None:
        capr.index.embedded.views.MAX_CHECKED = checked
    with open_library(path) as library:
        for query, mode in queries:
            try:
                results = library.search(query, 5, mode=mode)
                log(hits=[[hit.document, hit.passage.span.begin, hit.text] for hit in results], query=query, mode=mode)
            except CaprError as error:
                log(refused=str(error), query=query, mode=mode)
        log(problems=library.verify().problems)
        log(repaired=library.verify(repair=True).problems)
        for query, mode in queries:
            results = library.search(query, 5, mode=mode)
            log(again=[[hit.document, hit.passage.span.begin, hit.text] for hit in results], query=query, mode=mode)


def attempt(log, path, calls, user=None):
    """Call methods, as another user if `user` is set; log how each call ended."""
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    for name, *arguments in calls:
        try:
            with open_library(path) as library:
                if name == "add":
                    outcome = library.add([make(*version) for version in arguments]).added
                elif name == "search":
                    outcome = [[hit.document, hit.text] for hit in library.search(*arguments)]
                elif name == "verify":
                    outcome = library.verify().problems
                else:
                    outcome = str(getattr(library, name)(*arguments))
            log(call=name, outcome=outcome)
        except CaprError as error:
            log(call=name, refused=str(error))
        except BaseException:
            log(call=name, crashed=traceback.format_exc())


class WarningLog(logging.Handler):
    """Collects the warnings that `capr` logs."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []
        logging.getLogger("capr").addHandler(self)

    def emit(self, record):
        self.messages.append(record.getMessage())


def write(log, path, rounds, stop, ids=12, compacting=False):
    """Add, replace and remove documents until a file appears; log the version of the last round."""
    small_batches()
    warned = WarningLog()
    generator = random.Random(1)
    version = 0
    with open_library(path) as library:
        while not Path(stop).exists() and version < rounds:
            version += 1
            round_ids = [f"d{n}" for n in generator.sample(range(ids), 5)]
            library.add([make(id, version) for id in round_ids], replace=True)
            library.remove([round_ids[0], f"d{generator.randrange(ids)}"])
            if compacting and version % 5 == 0:
                library.compact()
        library.add([make("last", version)], replace=True)
    log(version=version, warned=warned.messages)


def read(log, path, stop, seed, ids=12):
    """Search until a file appears; log wrong hits, and check that the newest document can be found."""
    warned = WarningLog()
    generator = random.Random(seed)
    searches = hits = 0
    versions = set()
    with open_library(path) as library:
        while True:
            last = Path(stop).exists()
            id = f"d{generator.randrange(ids)}"
            query, mode = generator.choice(TOPICS), generator.choice(("hybrid", "lexical", "dense", "cdv"))
            filters = generator.choice(({}, {}, {"patient": f"p{id}"}, {"date": "2020-01-03..2020-01-20"}))
            results = library.search(query, 8, mode=mode, filters=filters, neighbours=1)
            searches, hits = searches + 1, hits + len(results)
            for hit in results:
                versions.add(hit.metadata["version"])
                fault = torn(hit)
                if filters.get("patient", hit.metadata["patient"]) != hit.metadata["patient"]:
                    fault = f"{hit.document} is of another patient"
                if fault:
                    log(torn=fault, text=hit.text)
            document = library.index.document(id)
            if document is not None and document != make(id, document.metadata["version"]):
                log(torn=f"the document {id}", text=document.text)
            if last:
                break
        end = time.monotonic() + 60
        newest = json.loads(Path(stop).read_text())
        while not (seen := library.search(marker("last", newest, 0), 3, mode="lexical").hits):
            if time.monotonic() > end:
                break
    log(searches=searches, hits=hits, versions=len(versions), last=bool(seen), warned=warned.messages)


def torn(hit):
    """Return the fault of a hit that mixes versions of its document, or an empty text."""
    whole = make(hit.document, hit.metadata["version"])
    if hit.text != whole[hit.passage.span] or hit.title != whole.title or hit.metadata != whole.metadata:
        return f"{hit.document} {hit.metadata['version']} at {hit.passage.span}"
    for neighbour in hit.neighbours:
        if neighbour.text != whole[neighbour.span]:
            return f"a neighbour of {hit.document} {hit.metadata['version']} at {neighbour.span}"
    return ""


def hold(log, path, until):
    """Hold the write lock until a file appears."""

    def documents():
        yield make("held", 1)
        log(holding=os.getpid())
        while not Path(until).exists():
            time.sleep(0.01)

    with open_library(path) as library:
        library.add(documents())


def fill(log, path, documents, limit=None, tmpfs=None, encoder=None, same=False):
    """Add documents without enough room, then make room and add them again.

    The second call runs in the same process (`same`), or in a new one, like a command that the user runs again.
    """
    import resource

    small_batches()
    if tmpfs:
        mount_tmpfs(path, tmpfs)
    batch = [make(*version) for version in documents]
    pid = 0 if same else os.fork()
    if not pid:
        try:
            if limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            add_without_room(log, Path(path) / "library", batch, encoder)
        except BaseException:
            log(crashed=traceback.format_exc())
        if not same:
            os._exit(0)
    else:
        os.waitpid(pid, 0)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if tmpfs:
        mount_tmpfs(path, "64m", again=True)
    add_with_room(log, Path(path) / "library", batch, encoder, documents[-1])


def add_without_room(log, path, batch, encoder):
    """Add documents until there is no room; log the error, the committed documents and the warnings."""
    warned = WarningLog()
    acknowledged = []
    refused = None
    try:
        with open_library(path, FakeEncoder(encoder) if encoder else None) as library:
            library.add(batch, on_commit=acknowledged.extend)
    except CaprError as error:
        refused = str(error)
    log(refused=refused, kept=acknowledged, warned=warned.messages)
    try:  # committed documents can still be read
        with open_library(path, FakeEncoder(encoder) if encoder else None) as library:
            library.search("cough", 3)
    except CaprError as error:
        log(search=str(error))


def add_with_room(log, path, batch, encoder, last):
    """Add the documents again; log the state of the library."""
    with open_library(path, FakeEncoder(encoder) if encoder else None) as library:
        stored = {document.id: document for document in library.documents()} if (path / "library.db").exists() else {}
        wrong = [id for id, document in stored.items() if document not in batch]
        log(there=list(stored))
        library.add(batch)
        missing = [document.id for document in batch if library.document(document.id) != document]
        check = library.verify()
        ids = [hit.document for hit in library.search(marker(*last, 0), 1, mode="lexical")]
        log(wrong=wrong, missing=missing, problems=check.problems, notices=check.notices, found=ids)


def mount_tmpfs(path, size, again=False):
    """Mount a small disk on a folder, for this process only; with `again`, change its size."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not again:
        if libc.unshare(0x00020000):  # CLONE_NEWNS
            raise OSError(ctypes.get_errno(), "unshare")
        if libc.mount(b"none", b"/", None, 0x44000, None):  # MS_REC | MS_PRIVATE
            raise OSError(ctypes.get_errno(), "mount")
    flags = 32 if again else 0  # MS_REMOUNT
    if libc.mount(b"tmpfs", str(path).encode(), b"tmpfs", flags, f"size={size}".encode()):
        raise OSError(ctypes.get_errno(), "mount")


def mount(log, path):
    """Log whether this process may mount small disks."""
    try:
        mount_tmpfs(path, "1m")
    except OSError as error:
        log(refused=str(error))
    else:
        log(refused="")


JOBS = {job.__name__: job for job in (change, search, attempt, write, read, hold, fill, mount)}


# --- a process that kills itself at a point ---


def kill_at(point, count):
    """Kill this process, like `kill -9`, when it reaches a point for the `count`-th time."""
    remaining = [count]

    def reach(name):
        if name == point:
            remaining[0] -= 1
            if not remaining[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    def wrap(target, name, before, after, when=lambda *_: True):
        original = getattr(target, name)

        def wrapped(*arguments, **options):
            counts = when(*arguments)
            if counts:
                reach(before)
            outcome = original(*arguments, **options)
            if counts:
                reach(after)
            return outcome

        setattr(target, name, wrapped)

    class Connection(sqlite3.Connection):
        def execute(self, query, *values):
            word = query.split()[0]
            word = "checkpoint" if "wal_checkpoint" in query else word.lower()
            reach(f"before {word}")
            outcome = super().execute(query, *values)
            reach(f"after {word}")
            return outcome

        def executescript(self, query):
            middle = query.index("CREATE TABLE passage")
            if point == "in create":
                super().executescript(query[:middle])
                reach("in create")
            return super().executescript(query)

    connect = sqlite3.connect
    sqlite3.connect = lambda *arguments, **options: connect(*arguments, **{"factory": Connection, **options})
    words, vectors = capr.index.embedded.words, capr.index.embedded.vectors
    wrap(os, "link", "before link", "after link")
    wrap(words.WordIndexWriter, "__init__", "before words are opened", "after words are opened")
    wrap(words.WordIndexWriter, "commit", "before words", "after words")
    wrap(words, "save_state", "between words and state", "after state of words")
    wrap(vectors.VectorIndexWriter, "append", "before vectors", "after vectors")
    wrap(vectors, "save_state", "between vectors and state", "after state of vectors")
    wrap(Path, "replace", "before rename", "after rename", lambda part, _: part.name == "state.json.part")
    wrap(capr.index.embedded.writer, "rmtree", "before rmtree", "after rmtree")
    wrap(FakeEncoder, "passages", "before encoding", "after encoding")
    wrap(FakeDiscourse, "sentences", "before sentences", "after sentences")
    original_write = vectors._write

    def write(file, begin, data):
        if point == "half of an array":
            original_write(file, begin, data[: len(data) // 2])
            reach("half of an array")
        original_write(file, begin, data)
        reach("after an array")

    vectors._write = write


def main():
    """Read requests from standard input: start a job in a new process, or poll whether a process has ended."""
    vocabulary = Vocabulary.load()
    annotator(False, vocabulary).annotate(make("warm", 1))
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "poll" in request:
            pid, status = os.waitpid(request["poll"], os.WNOHANG)
            print(json.dumps(os.waitstatus_to_exitcode(status) if pid else None), flush=True)
            continue
        pid = os.fork()
        if not pid:
            run(**request)
        print(pid, flush=True)


def run(job, log, **arguments):
    """Run a job with its log, then end the process."""
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 0)
    os.dup2(devnull, 1)
    os.dup2(os.open(f"{log}.stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 2)
    faulthandler.enable()  # a segmentation fault writes its stack there, and the test shows it
    write_line = Log(log)
    try:
        JOBS[job](write_line, **arguments)
        os._exit(0)
    except BaseException:
        write_line(crashed=traceback.format_exc())
        os._exit(1)


if __name__ == "__main__":
    main()
