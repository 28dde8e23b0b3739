# The program alone: static, no shell, not root, data in /data.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /tidemark ./cmd/tidemark && mkdir /data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /tidemark /tidemark
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
ENV TIDEMARK_DATA=/data TIDEMARK_LISTEN=0.0.0.0:8080
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["/tidemark"]
CMD ["serve"]
