"""CUDA streams played on a CPU, to find what two of them would do to the same memory in no fixed order.

A stream knows how many operations of every stream come before its next one. Memory belongs to the stream it was asked
for on, as in PyTorch's allocator: once nobody holds it, that stream may use it again at any time.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Stream:
    def __init__(self, device=None):
        self.before: Counter[Stream] = Counter()  # operations, by stream

    def wait_stream(self, other):
        self.before |= other.before


class Memory:
    def __init__(self, storage, owner):
        self.alive, self.owner = StorageWeakRef(storage), owner
        self.reads: Counter[Stream] = Counter()  # the last one of every stream
        self.writes: Counter[Stream] = Counter()


def _storages(tree):
    return {t.untyped_storage()._cdata: t.untyped_storage() for t in tree_leaves(tree) if isinstance(t, torch.Tensor)}


def _written(func, args, kwargs):
    named = dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | kwargs
    return [named[a.name] for a in func._schema.arguments if a.name in named and a.alias_info and a.alias_info.is_write]


class Streams(TorchDispatchMode):
    """In its context `torch.cuda`'s streams are these. `races` names the operations that do not wait as they should."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.current, self.known, self.races = Stream(), {}, []
        self.beside = 0  # operations on other streams than the first
        self.first = self.current
        monkeypatch.setattr(torch.cuda, "Stream", Stream)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: self.current)
        monkeypatch.setattr(torch.cuda, "stream", self._on)

    @contextmanager
    def _on(self, stream):
        before, self.current = self.current, stream
        yield
        self.current = before

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.is_view:
            return result
        now = self.current
        now.before[now] += 1
        self.beside += now is not self.first
        name = func.overloadpacket.__name__
        read, written, made = _storages((args, kwargs)), _storages(_written(func, args, kwargs)), _storages(result)
        for memory in self.known.values():
            if memory.owner is now and memory.alive.expired():
                self._expect(memory.reads | memory.writes, f"{name}, in memory that is still in use")
        self.known = {key: memory for key, memory in self.known.items() if not memory.alive.expired()}
        for key, storage in (read | made).items():
            owner = now if key in made and key not in read else self.first
            memory = self.known.setdefault(key, Memory(storage, owner))
            if key in read:
                self._expect(memory.writes, f"{name} reads")
                memory.reads[now] = now.before[now]
            if key in written or key not in read:
                self._expect(memory.reads | memory.writes, f"{name} writes")
                memory.writes[now] = now.before[now]
        return result

    def _expect(self, earlier, what):
        if any(count > self.current.before[stream] for stream, count in earlier.items()):
            self.races.append(what)
