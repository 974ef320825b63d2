# The steps of `make demo`, with the extra for serving.
#   docker build -t i2l . && docker run --rm --read-only --tmpfs /tmp -p 8501:8501 -e I2L_TOKEN=... i2l
FROM python:3.12-slim
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN pip install --quiet --no-cache-dir --disable-pip-version-check --no-compile --constraint constraints.txt ".[serve]" \
    && useradd --system --no-create-home --shell /usr/sbin/nologin i2l
USER i2l
EXPOSE 8501
HEALTHCHECK --interval=15s --timeout=3s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/ready', timeout=2)"]
CMD ["i2l", "serve", "--host", "0.0.0.0", "--no-browser"]
