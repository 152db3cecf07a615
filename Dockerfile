# docker build -t cadr .
# docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" cadr diagnose photos/ --labels labels.csv
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY recipes recipes
COPY src src
# On a CPU; for a GPU give --build-arg TORCH=https://download.pytorch.org/whl/cu128
ARG TORCH=https://download.pytorch.org/whl/cpu
RUN python -m venv /opt/cadr && \
    /opt/cadr/bin/pip install --no-cache-dir --constraint constraints.txt --extra-index-url "$TORCH" '.[parquet]'

FROM python:3.12-slim
COPY --from=build /opt/cadr /opt/cadr
ENV PATH=/opt/cadr/bin:$PATH \
    XDG_CACHE_HOME=/tmp/cache \
    PYTHONUNBUFFERED=1
RUN useradd --create-home --uid 1000 cadr
USER 1000
WORKDIR /data
ENTRYPOINT ["cadr"]
CMD ["--help"]
