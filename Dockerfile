# SPDX-License-Identifier: Apache-2.0
# frugal with what it needs, and its demo: docker build -t frugal . && docker run --rm frugal
# .ci/bare FOLDER --image runs these steps without Docker: one command for each RUN, without a continued line.
FROM debian:bookworm AS setup
WORKDIR /frugal
COPY dev ./
COPY requirements requirements
RUN ./dev setup

# .devcontainer/devcontainer.json stops before this stage: there the checkout is mounted.
FROM setup
COPY . .
RUN ./dev demo --help
CMD ["./dev", "demo"]
