# albert-lab in a container (docs/getting-started.md). TORCH is an index of PyTorch's builds: cpu, cu126, cu130, ...
ARG PYTHON=3.13
FROM python:${PYTHON}-slim
ARG TORCH=cpu
COPY . /opt/albert-lab
RUN cd /opt/albert-lab \
 && pip install --no-cache-dir --constraint constraints.txt --extra-index-url "https://download.pytorch.org/whl/${TORCH}" .
ENV ALBERT_LAB_HOME=/lab
VOLUME /lab
ENTRYPOINT ["albert-lab"]
