# docs/howto/docker.md says how to use it.
ARG PYTHON=3.11-slim

FROM python:${PYTHON} AS build
ARG EXTRAS=ingest,oauth,postgres,pull,remote
WORKDIR /build
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE ./
COPY models models
COPY src src
# The model and its two libraries, without what these need only to download models.
RUN python -m venv /opt/zibaldone \
    && /opt/zibaldone/bin/pip install --no-cache-dir --constraint constraints.txt --no-deps onnxruntime tokenizers \
    && /opt/zibaldone/bin/pip install --no-cache-dir --constraint constraints.txt ".[${EXTRAS}]" \
    && /opt/zibaldone/bin/python models/minilm/build.py --install \
    && /opt/zibaldone/bin/pip uninstall --yes pip setuptools

FROM python:${PYTHON}
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin zibaldone \
    && install --directory --owner zibaldone --mode 0700 /data
COPY --from=build /opt/zibaldone /opt/zibaldone
ENV PATH=/opt/zibaldone/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    ZIBALDONE_DATA=/data \
    ZIBALDONE_HOST=0.0.0.0 \
    ZIBALDONE_PORT=8321
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8321
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import http.client, os; c = http.client.HTTPConnection('127.0.0.1', int(os.environ['ZIBALDONE_PORT']), timeout=4); c.request('GET', '/health'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["zibaldone"]
CMD ["serve"]
