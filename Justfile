# Each recipe is one command that also works by hand.

default:
    @just --list

# the tour on the embedded cluster
demo:
    go run ./cmd/pvelens demo

build:
    CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o pvelens ./cmd/pvelens
    CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags "-s -w" -o pvelens-gate ./cmd/pvelens-gate

test:
    go test ./...

# rewrite the parts of the documentation that are printed from code
docs:
    go run ./cmd/pvelens docs

# rewrite the golden reports; read the diff
golden:
    go test ./tools -update

lint:
    go vet ./...
    go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

bench:
    go test -run '^$' -bench . -benchtime 3x ./transport ./tools/...

fuzz target package time="60s":
    go test -run '^$' -fuzz '^{{target}}$' -fuzztime {{time}} {{package}}

# known vulnerabilities; needs the network
vuln:
    go run golang.org/x/vuln/cmd/govulncheck@latest ./...

ci:
    sudo bash .ci/run
