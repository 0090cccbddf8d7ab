# capr with its server. Build it from the repository: docker build -t capr .
FROM python:3.12-slim AS build
WORKDIR /source
RUN python -m venv /opt/capr
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN /opt/capr/bin/pip install --no-cache-dir '.[pdf,serve]'

FROM python:3.12-slim
COPY --from=build /opt/capr /opt/capr
ENV PATH=/opt/capr/bin:$PATH PYTHONUNBUFFERED=1
RUN useradd --uid 1000 --create-home capr && install --directory --owner capr /data
USER capr
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["capr"]
CMD ["serve", "/data/library", "--host", "0.0.0.0", "--port", "8000", "--require-token"]
