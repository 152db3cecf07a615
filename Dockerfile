# docker build -t cadr .
# docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" cadr diagnose photos/ --labels labels.csv
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY recipes recipes
COPY src src
# PyTorch as the usual index has it, for a GPU; a smaller image takes --build-arg TORCH=ADDRESS of an index of CPU builds
ARG TORCH=""
RUN python -m venv /cadr && \
    /cadr/bin/pip install --no-cache-dir --constraint constraints.txt ${TORCH:+--extra-index-url "$TORCH"} '.[parquet]'

FROM python:3.12-slim
COPY --from=build /cadr /cadr
ENV PATH=/cadr/bin:$PATH \
    XDG_CACHE_HOME=/tmp/cache \
    PYTHONUNBUFFERED=1
RUN useradd --create-home --uid 1000 cadr
USER 1000
WORKDIR /data
ENTRYPOINT ["cadr"]
CMD ["--help"]
