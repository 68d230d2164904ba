"""A Qdrant server on loopback, as far as our store needs one: the wire is real, the engine is `qdrant_edge`.

Every body is parsed by qdrant-client's own models; what they refuse stands in `invalid`. `fail` injects faults.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import qdrant_edge as edge
from pydantic import ValidationError
from qdrant_client import models

from tests.loopback import LoopbackServer, Reply, Request

HNSW = models.HnswConfig(m=0, ef_construct=100, full_scan_threshold=10_000)
OPTIMIZERS = models.OptimizersConfig(
    deleted_threshold=0.2, vacuum_min_vector_number=1000, default_segment_number=0, flush_interval_sec=5
)


@dataclass
class Collection:
    shard: edge.EdgeShard
    made: models.CreateCollection
    vectors: dict[str, models.VectorParams] = field(default_factory=dict)
    indexes: dict[str, models.KeywordIndexParams] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class _Fault:
    reply: Reply
    part: str
    left: float
    hits: int = 0


class RefusalError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class QdrantShim(LoopbackServer):
    def __init__(self, folder: Path, *, version: str = "1.20.0", key: str | None = None) -> None:
        super().__init__()
        self.folder, self.version, self.key = folder, version, key
        self.collections: dict[str, Collection] = {}
        self.requests: list[Request] = []
        self.invalid: list[str] = []
        self._faults: list[_Fault] = []
        self._lock = threading.Lock()

    def fail(self, reply: Reply, *, path: str = "", times: float = float("inf")) -> _Fault:
        """Requests whose method and path have this part get the reply, so many times."""
        fault = _Fault(reply, path, times)
        self._faults.insert(0, fault)
        return fault

    def heal(self) -> None:
        self._faults.clear()

    def asked(self, part: str) -> list[Request]:
        return [request for request in self.requests if part in f"{request.method} {request.path}"]

    def answer(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            fault = next(
                (one for one in self._faults if one.left > 0 and one.part in f"{request.method} {request.path}"), None
            )
            if fault:
                fault.left -= 1
                fault.hits += 1
        if fault and not (fault.reply.status == 200 and fault.reply.body is None):
            return fault.reply
        answered = self._answer(request)
        return (
            Reply(answered.status, answered.body, seconds=fault.reply.seconds, is_cut=fault.reply.is_cut)
            if fault
            else answered
        )

    def _answer(self, request: Request) -> Reply:
        if self.key and request.headers.get("api-key") != self.key and request.path != "/":
            return Reply(401, b"Must provide an API key or an Authorization bearer token")
        try:
            return Reply(
                200,
                {"result": self._run(request), "status": "ok", "time": 0.0} if request.path != "/" else self._about(),
            )
        except RefusalError as refusal:
            return Reply(refusal.status, {"status": {"error": str(refusal)}, "time": 0.0})
        except ValidationError as error:
            self.invalid.append(f"{request.method} {request.path}: {error}")
            return Reply(422, {"status": {"error": "Format error in JSON body"}, "time": 0.0})
        except Exception as error:  # the engine's
            status = 404 if "No point with id" in str(error) else 400
            return Reply(status, {"status": {"error": f"Wrong input: {error}"}, "time": 0.0})

    def _about(self) -> dict[str, str]:
        return {"title": "qdrant - vector search engine", "version": self.version}

    def _run(self, request: Request) -> Any:
        where = urlsplit(request.path)
        self._check_parameters(where.query)
        for method, pattern, run in ROUTES:
            found = re.fullmatch(pattern, where.path)
            if found and method == request.method:
                return run(self, *found.groups(), request.body)
        self.invalid.append(f"{request.method} {request.path}: no such route here")
        raise RefusalError(404, "no such route")

    def _check_parameters(self, query: str) -> None:
        allowed = {"wait": ("true", "false"), "ordering": ("weak", "medium", "strong"), "timeout": None}
        for name, value in parse_qsl(query, strict_parsing=bool(query)):
            fits = name in allowed and (value in (allowed[name] or ()) or (name == "timeout" and int(value) >= 1))
            if not fits:
                self.invalid.append(f"parameter {name}={value}")

    def collection(self, name: str) -> Collection:
        if name not in self.collections:
            raise RefusalError(404, f"Not found: Collection `{name}` doesn't exist!")
        return self.collections[name]


def _create(shim: QdrantShim, name: str, body: bytes) -> bool:
    asked = models.CreateCollection.model_validate_json(body)
    with shim._lock:
        if name in shim.collections:
            raise RefusalError(409, f"Wrong input: Collection `{name}` already exists!")
        folder = shim.folder / name
        folder.mkdir(parents=True)
        sparse = {
            vector: edge.EdgeSparseVectorParams(
                modifier=edge.Modifier.Idf if given.modifier == models.Modifier.IDF else None
            )
            for vector, given in (asked.sparse_vectors or {}).items()
        }
        shard = edge.EdgeShard.create(str(folder), edge.EdgeConfig(sparse_vectors=sparse, wal_enabled=False))
        shim.collections[name] = Collection(shard, asked)
    return True


def _info(shim: QdrantShim, name: str, _: bytes) -> Any:
    at = shim.collection(name)
    params = models.CollectionParams(
        vectors=at.vectors,
        sparse_vectors=at.made.sparse_vectors,
        shard_number=at.made.shard_number,
        replication_factor=at.made.replication_factor,
        write_consistency_factor=at.made.write_consistency_factor,
    )
    schema = {
        field: models.PayloadIndexInfo(data_type=models.PayloadSchemaType.KEYWORD, params=given, points=0)
        for field, given in at.indexes.items()
    }
    info = models.CollectionInfo(
        status=models.CollectionStatus.GREEN,
        optimizer_status=models.OptimizersStatusOneOf.OK,
        segments_count=1,
        config=models.CollectionConfig(params=params, hnsw_config=HNSW, optimizer_config=OPTIMIZERS),
        payload_schema=schema,
    )
    return info.model_dump(mode="json", exclude_none=True)


def _index(shim: QdrantShim, name: str, body: bytes) -> Any:
    asked, at = models.CreateFieldIndex.model_validate_json(body), shim.collection(name)
    schema = asked.field_schema
    assert isinstance(schema, models.KeywordIndexParams)
    params = edge.KeywordIndexParams(is_tenant=bool(schema.is_tenant))
    with at.lock:
        at.shard.update(edge.UpdateOperation.create_field_index(asked.field_name, params))
        at.indexes[asked.field_name] = schema
    return DONE


def _add_vector(shim: QdrantShim, name: str, vector: str, body: bytes) -> Any:
    asked, at = models.DenseVectorNameConfig.model_validate_json(body).dense, shim.collection(name)
    assert asked.distance == models.Distance.COSINE
    with at.lock:
        at.shard.update(edge.UpdateOperation.create_dense_vector(vector, asked.size, edge.Distance.Cosine))
        at.vectors[vector] = models.VectorParams(size=asked.size, distance=asked.distance)
    return DONE


def _drop_vector(shim: QdrantShim, name: str, vector: str, _: bytes) -> Any:
    at = shim.collection(name)
    with at.lock:
        at.shard.update(edge.UpdateOperation.delete_vector_name(vector))
        at.vectors.pop(vector, None)
    return DONE


def _upsert(shim: QdrantShim, name: str, body: bytes) -> Any:
    asked = models.PointsList.model_validate_json(body)
    points = [edge.Point(point.id, _vectors(point.vector), point.payload or {}) for point in asked.points]
    mode = {None: None, models.UpdateMode.INSERT_ONLY: edge.UpdateMode.InsertOnly}[asked.update_mode]
    return _update(shim, name, edge.UpdateOperation.upsert_points(points, update_mode=mode))


def _update_vectors(shim: QdrantShim, name: str, body: bytes) -> Any:
    asked = models.UpdateVectors.model_validate_json(body)
    points = [edge.PointVectors(point.id, _vectors(point.vector)) for point in asked.points]
    return _update(shim, name, edge.UpdateOperation.update_vectors(points))


def _delete(shim: QdrantShim, name: str, body: bytes) -> Any:
    asked = models.PointIdsList.model_validate_json(body)
    return _update(shim, name, edge.UpdateOperation.delete_points(list(asked.points)))


def _update(shim: QdrantShim, name: str, operation: edge.UpdateOperation) -> Any:
    at = shim.collection(name)
    with at.lock:
        at.shard.update(operation)
    return DONE


def _retrieve(shim: QdrantShim, name: str, body: bytes) -> Any:
    asked, at = models.PointRequest.model_validate_json(body), shim.collection(name)
    with at.lock:
        found = at.shard.retrieve(list(asked.ids), _selected(asked.with_payload), asked.with_vector or False)
    return [_record(record) for record in found]


def _scroll(shim: QdrantShim, name: str, body: bytes) -> Any:
    asked, at = models.ScrollRequest.model_validate_json(body), shim.collection(name)
    request = edge.ScrollRequest(
        offset=asked.offset,
        limit=asked.limit,
        filter=_filter(asked.filter),
        with_payload=_selected(asked.with_payload),
        with_vector=asked.with_vector,
    )
    with at.lock:
        found, offset = at.shard.scroll(request)
    return {
        "points": [_record(record) for record in found],
        "next_page_offset": None if offset is None else str(offset),
    }


def _count(shim: QdrantShim, name: str, body: bytes) -> Any:
    asked, at = models.CountRequest.model_validate_json(body), shim.collection(name)
    with at.lock:
        return {"count": at.shard.count(edge.CountRequest(exact=asked.exact, filter=_filter(asked.filter)))}


def _query(shim: QdrantShim, name: str, body: bytes) -> Any:
    asked, at = models.QueryRequest.model_validate_json(body), shim.collection(name)
    query: Any = asked.query.nearest if isinstance(asked.query, models.NearestQuery) else asked.query
    is_sparse = isinstance(query, models.SparseVector)
    idf = asked.params.idf if asked.params else None
    assert idf is None or isinstance(idf, models.IdfCorpusParams)
    request = edge.QueryRequest(
        limit=asked.limit,
        query=edge.Query.Nearest(
            edge.SparseVector(query.indices, query.values) if is_sparse else list(query), using=asked.using
        ),
        filter=_filter(asked.filter),
        with_payload=_selected(asked.with_payload),
        params=edge.SearchParams(idf=edge.IdfParams(corpus=_filter(idf.corpus))) if idf else None,
    )
    with at.lock:
        found = at.shard.query(request)
    return {"points": [{**_record(point), "version": 0, "score": point.score} for point in found]}


DONE = {"operation_id": 0, "status": "completed"}
AT = r"/collections/([\w.-]+)"
Route = Callable[..., Any]
ROUTES: list[tuple[str, str, Route]] = [
    ("PUT", AT, _create),
    ("GET", AT, _info),
    ("PUT", f"{AT}/index", _index),
    ("PUT", rf"{AT}/vectors/(\w+)", _add_vector),
    ("DELETE", rf"{AT}/vectors/(\w+)", _drop_vector),
    ("PUT", f"{AT}/points", _upsert),
    ("PUT", f"{AT}/points/vectors", _update_vectors),
    ("POST", f"{AT}/points/delete", _delete),
    ("POST", f"{AT}/points", _retrieve),
    ("POST", f"{AT}/points/scroll", _scroll),
    ("POST", f"{AT}/points/count", _count),
    ("POST", f"{AT}/points/query", _query),
]


def _vectors(given: Any) -> dict[str, Any]:
    return {
        name: edge.SparseVector(vector.indices, vector.values) if isinstance(vector, models.SparseVector) else vector
        for name, vector in given.items()
    }


def _record(record: Any) -> dict[str, Any]:
    return {"id": str(record.id), "payload": record.payload, "vector": record.vector}


def _selected(given: Any) -> Any:
    if isinstance(given, models.PayloadSelectorExclude):
        return edge.PayloadSelector.Exclude(list(given.exclude))
    if isinstance(given, models.PayloadSelectorInclude):
        return edge.PayloadSelector.Include(list(given.include))
    return edge.PayloadSelector.Include(list(given)) if isinstance(given, list) else given


def _filter(given: models.Filter | None) -> edge.Filter | None:
    if given is None:
        return None
    assert given.should is None and given.min_should is None
    return edge.Filter(must=_conditions(given.must), must_not=_conditions(given.must_not))


def _conditions(given: Any) -> list[Any] | None:
    return None if given is None else [_condition(one) for one in (given if isinstance(given, list) else [given])]


def _condition(given: Any) -> Any:
    if isinstance(given, models.HasVectorCondition):
        return edge.HasVectorCondition(given.has_vector)
    if isinstance(given, models.HasIdCondition):
        return edge.HasIdCondition(set(given.has_id))
    assert isinstance(given, models.FieldCondition) and isinstance(given.match, models.MatchAny)
    return edge.FieldCondition(key=given.key, match=edge.MatchAny(list(given.match.any)))
