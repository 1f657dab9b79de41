package tools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"pvelens/fixtures"
	"pvelens/tools/report"
)

// wire speaks to a server as a client does, a message a line.
type wire struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Scanner
	done chan error
}

func dialServer(t *testing.T, ctx context.Context, env *Env, ts []Tool) *wire {
	t.Helper()
	s := NewServer(ctx, env, ts, "test", slog.New(slog.DiscardHandler))
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	w := &wire{t: t, in: inW, out: bufio.NewScanner(outR), done: make(chan error, 1)}
	w.out.Buffer(nil, 8<<20)
	go func() {
		w.done <- Serve(ctx, s, inR, outW)
		outW.Close()
	}()
	t.Cleanup(func() { inW.Close(); outR.Close() })
	return w
}

func (w *wire) send(format string, args ...any) {
	w.t.Helper()
	if _, err := fmt.Fprintf(w.in, format+"\n", args...); err != nil {
		w.t.Fatal(err)
	}
}

type reply struct {
	ID     int
	Method string
	Raw    string
	Error  *struct {
		Code    int
		Message string
	}
	Result struct {
		IsError           bool
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
		Meta              map[string]any `json:"_meta"`
		ProtocolVersion   string
	}
}

func (w *wire) read() (r reply, ok bool) {
	w.t.Helper()
	if !w.out.Scan() {
		return r, false
	}
	if err := json.Unmarshal(w.out.Bytes(), &r); err != nil {
		w.t.Fatalf("not a message: %v", err)
	}
	r.Raw = w.out.Text()
	return r, true
}

// reply reads up to the reply to a request.
func (w *wire) reply(id int) reply {
	w.t.Helper()
	for {
		r, ok := w.read()
		if !ok {
			w.t.Fatalf("no reply to %d", id)
		}
		if r.ID == id && r.Method == "" {
			return r
		}
	}
}

func (w *wire) hello() {
	w.t.Helper()
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if r := w.reply(1); r.Result.ProtocolVersion != "2025-06-18" {
		w.t.Fatalf("initialize: %s", r.Raw)
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (w *wire) call(id int, name, args string) reply {
	w.t.Helper()
	w.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, args)
	return w.reply(id)
}

func TestTextAndStructuredContentAreTheSameFacts(t *testing.T) {
	w := dialServer(t, t.Context(), replay(t, fixtures.Heimlabor(), fixtures.Options{}), All())
	w.hello()
	r := w.call(2, "list_guests", `{}`)
	var text, structured any
	if err := json.Unmarshal([]byte(r.Result.Content[0].Text), &text); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(r.Result.StructuredContent, &structured); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, structured); diff != "" {
		t.Errorf("text and structured content differ (-text +structured):\n%s", diff)
	}
	if strings.Contains(r.Result.Content[0].Text, "\n") || strings.Contains(r.Result.Content[0].Text, ": ") && strings.Contains(r.Result.Content[0].Text, "  ") {
		t.Error("the text is not compact")
	}
}

func TestNullArgumentsAreNone(t *testing.T) {
	w := dialServer(t, t.Context(), replay(t, fixtures.Heimlabor(), fixtures.Options{}), All())
	w.hello()
	if r := w.call(2, "list_nodes", `null`); r.Error != nil || r.Result.IsError {
		t.Errorf("arguments null: %s", r.Raw)
	}
	w.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_nodes"}}`)
	if r := w.reply(3); r.Error != nil || r.Result.IsError {
		t.Errorf("no arguments: %s", r.Raw)
	}
}

func TestBadArgumentsNameWhatWasWanted(t *testing.T) {
	w := dialServer(t, t.Context(), replay(t, fixtures.Heimlabor(), fixtures.Options{}), All())
	w.hello()
	for i, c := range []struct{ tool, args, want string }{
		{"list_guests", `{"limit":0}`, "INVALID_ARGUMENT: limit must be a whole number from 1 to 500"},
		{"list_guests", `{"limit":1000000000}`, "INVALID_ARGUMENT: limit must be a whole number from 1 to 500"},
		{"list_guests", `{"limit":"5"}`, "INVALID_ARGUMENT: limit must be a whole number from 1 to 500"},
		{"list_guests", `{"limit":1.5}`, "INVALID_ARGUMENT: limit must be a whole number from 1 to 500"},
		{"list_guests", `{"type":"vm"}`, "INVALID_ARGUMENT: type must be one of lxc, qemu"},
		{"list_guests", `{"Limit":5}`, `INVALID_ARGUMENT: unknown argument "Limit"`},
		{"list_guests", `{"template":"yes"}`, "INVALID_ARGUMENT: template must be true or false"},
		{"list_guests", `{"node":"pve9"}`, "NOT_FOUND: no node named pve9. Hint: nodes are: pve1, pve2, pve3"},
		{"list_guests", `[1]`, "INVALID_ARGUMENT: arguments must be one JSON object"},
		{"get_guest_config", `{}`, "INVALID_ARGUMENT: guest is required: VMID, exact name, or CLUSTER/VMID"},
		{"get_guest_config", `{"guest":99}`, "INVALID_ARGUMENT: a VMID is a number from 100 to 999999999"},
		{"get_guest_config", `{"guest":""}`, "INVALID_ARGUMENT: guest must be text of 1 to 200 printable characters"},
		{"get_guest_config", `{"guest":"999"}`, "NOT_FOUND: no guest 999"},
		{"get_guest_config", `{"guest":999.0}`, "NOT_FOUND: no guest 999"},
		{"get_guest_config", `{"guest":102.5}`, "INVALID_ARGUMENT: guest must be text"},
		{"get_guest_config", `{"guest":100000000000000000000}`, "INVALID_ARGUMENT: guest must be text"},
		{"get_guest_config", `{"guest":"a\u0000b"}`, "INVALID_ARGUMENT: guest must be text"},
	} {
		r := w.call(10+i, c.tool, c.args)
		if !r.Result.IsError || len(r.Result.Content) != 1 || !strings.HasPrefix(r.Result.Content[0].Text, c.want) {
			t.Errorf("%s %s:\n got %s\nwant %s", c.tool, c.args, r.Raw, c.want)
			continue
		}
		if code, _, _ := strings.Cut(c.want, ":"); r.Result.Meta[codeMeta] != code || r.Result.StructuredContent != nil {
			t.Errorf("%s %s: code %v, structured %s", c.tool, c.args, r.Result.Meta[codeMeta], r.Result.StructuredContent)
		}
	}
}

type nothingIn struct{ Common }

type oddOut struct {
	report.Answer
	Big  int64             `json:"big"`
	Text string            `json:"text"`
	Rows []report.Evidence `json:"rows"`
}

func (*oddOut) Tables() []report.Table { return nil }

func TestAPanicEndsOneCallOnly(t *testing.T) {
	bad := define("bad", "Bad", "Panics.", func(context.Context, *Session, nothingIn) (*oddOut, error) { panic("secret words") })
	deep := define("deep", "Deep", "Panics in a goroutine.", func(context.Context, *Session, nothingIn) (*oddOut, error) {
		parallel([]int{1, 2, 3}, func(int, int) { panic("secret words") })
		return &oddOut{}, nil
	})
	w := dialServer(t, t.Context(), replay(t, fixtures.Heimlabor(), fixtures.Options{}), append(All(), bad, deep))
	w.hello()
	r := w.call(2, "bad", `{}`)
	if !r.Result.IsError || strings.Contains(r.Raw, "secret") || r.Result.Meta[codeMeta] != "INTERNAL" {
		t.Errorf("panic: %s", r.Raw)
	}
	if r := w.call(3, "list_nodes", `{}`); r.Result.IsError {
		t.Errorf("after the panic: %s", r.Raw)
	}
	if r := w.call(4, "deep", `{}`); !r.Result.IsError || strings.Contains(r.Raw, "secret") || r.Result.Meta[codeMeta] != "INTERNAL" {
		t.Errorf("panic beside the call: %s", r.Raw)
	}
}

func TestOddValuesArriveAsTheyAre(t *testing.T) {
	odd := define("odd", "Odd", "Odd values.", func(context.Context, *Session, nothingIn) (*oddOut, error) {
		return &oddOut{Big: 9007199254740993, Text: "<none> && ok", Rows: []report.Evidence{}}, nil
	})
	w := dialServer(t, t.Context(), replay(t, fixtures.Heimlabor(), fixtures.Options{}), []Tool{odd})
	w.hello()
	r := w.call(2, "odd", `{}`)
	text := r.Result.Content[0].Text
	if !strings.Contains(text, `"<none> && ok"`) || !strings.Contains(text, "9007199254740993") || !strings.Contains(string(r.Result.StructuredContent), "9007199254740993") {
		t.Errorf("odd values: %s", r.Raw)
	}
}

func TestDiscoverThenInitialize(t *testing.T) {
	w := dialServer(t, t.Context(), replay(t, fixtures.Heimlabor(), fixtures.Options{}), All())
	w.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if r := w.reply(1); r.Error != nil {
		t.Fatalf("discover: %s", r.Raw)
	}
	w.send(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if r := w.reply(2); r.Error != nil || r.Result.ProtocolVersion != "2025-11-25" {
		t.Fatalf("initialize after discover: %s", r.Raw)
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if r := w.call(3, "list_nodes", `{}`); r.Error != nil || r.Result.IsError {
		t.Errorf("call after both: %s", r.Raw)
	}
}

func TestTheNewEraNeedsNoInitialize(t *testing.T) {
	w := dialServer(t, t.Context(), replay(t, fixtures.Heimlabor(), fixtures.Options{}), All())
	w.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_nodes","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if r := w.reply(3); r.Error != nil || r.Result.IsError {
		t.Errorf("call: %s", r.Raw)
	}
}

func TestRepliesComeAfterTheInputEnded(t *testing.T) {
	w := dialServer(t, t.Context(), replay(t, fixtures.Heimlabor(), fixtures.Options{Delay: map[string]time.Duration{"": 20 * time.Millisecond}}), All())
	w.hello()
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_guests","arguments":{}}}`)
	w.in.Close()
	if r := w.reply(2); r.Error != nil || r.Result.IsError {
		t.Errorf("reply: %s", r.Raw)
	}
	if err := <-w.done; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestASignalEndsRunningCalls(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	entered := make(chan bool)
	slow := define("slow", "Slow", "Waits.", func(_ context.Context, s *Session, _ nothingIn) (*oddOut, error) {
		close(entered)
		<-s.ctx.Done()
		return nil, s.ctx.Err()
	})
	w := dialServer(t, ctx, replay(t, fixtures.Heimlabor(), fixtures.Options{}), []Tool{slow})
	w.hello()
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{}}}`)
	<-entered
	cancel()
	for {
		if _, ok := w.read(); !ok {
			break
		}
	}
	if err := <-w.done; err != nil {
		t.Errorf("Serve after a signal: %v", err)
	}
}

func TestACancelledCallEnds(t *testing.T) {
	entered, ended := make(chan bool), make(chan error, 1)
	slow := define("slow", "Slow", "Waits.", func(_ context.Context, s *Session, _ nothingIn) (*oddOut, error) {
		close(entered)
		<-s.ctx.Done()
		ended <- context.Cause(s.ctx)
		return nil, s.ctx.Err()
	})
	w := dialServer(t, t.Context(), replay(t, fixtures.Heimlabor(), fixtures.Options{}), []Tool{slow})
	w.hello()
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{}}}`)
	<-entered
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	<-ended
	if r := w.reply(2); !r.Result.IsError && r.Error == nil {
		t.Errorf("cancelled call: %s", r.Raw)
	}
}

func TestPromptsAndResources(t *testing.T) {
	w := dialServer(t, t.Context(), replay(t, fixtures.Heimlabor(), fixtures.Options{}), All())
	w.hello()
	for i, c := range []struct{ method, params, want string }{
		{"prompts/get", `{"name":"diagnose_guest"}`, "INVALID_ARGUMENT: guest is required"},
		{"prompts/get", `{"name":"diagnose_guest","arguments":{"guest":"102"}}`, "guest 102"},
		{"prompts/get", `{"name":"diagnose_guest","arguments":{"guest":"%[profile]s","profile":"p"}}`, "guest %[profile]s with"},
		{"resources/read", `{"uri":"pvelens://allowlist"}`, "guest-configs"},
		{"resources/read", `{"uri":"pvelens://findings"}`, "BACKUP_NONE"},
		{"resources/read", `{"uri":"pvelens://findings/BACKUP_NONE"}`, "No archive"},
		{"resources/read", `{"uri":"pvelens://findings/..%2fallowlist"}`, "-32602"},
		{"resources/read", `{"uri":"pvelens://findings/"}`, "-32602"},
		{"resources/read", `{"uri":"pvelens://findings/NOPE"}`, "-32602"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"diagnose_guest"},"argument":{"name":"guest","value":"zzz"}}`, `"values":[]`},
	} {
		w.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, 20+i, c.method, c.params)
		if r := w.reply(20 + i); !strings.Contains(r.Raw, c.want) {
			t.Errorf("%s %s: got %s, want %s in it", c.method, c.params, r.Raw, c.want)
		}
	}
}

func TestCompletionsComeFromTheLastInventory(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
	if got := env.Completions("guest", "i"); len(got) != 0 {
		t.Errorf("before an inventory: %v", got)
	}
	if _, err := call(t, env, "list_guests", `{}`); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"immich"}, env.Completions("guest", "I")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"pve1", "pve2", "pve3"}, env.Completions("node", "")); diff != "" {
		t.Error(diff)
	}
}

// TestToolList pins what every client is given and pays for.
func TestToolList(t *testing.T) {
	client, server := mcp.NewInMemoryTransports()
	s := NewServer(t.Context(), &Env{}, All(), "test", slog.New(slog.DiscardHandler))
	go s.Run(t.Context(), server)
	c, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(t.Context(), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, input := 0, 0
	for _, tool := range list.Tools {
		b, err := json.Marshal(tool)
		if err != nil {
			t.Fatal(err)
		}
		in, _ := json.Marshal(tool.InputSchema)
		whole += len(b)
		input += len(in) + len(tool.Description)
		a := tool.Annotations
		if tool.Title == "" || tool.Description == "" || a == nil || !a.ReadOnlyHint || a.DestructiveHint == nil || *a.DestructiveHint || a.OpenWorldHint == nil || *a.OpenWorldHint {
			t.Errorf("%s: title, description or annotations", tool.Name)
		}
		if len(tool.Description) > 400 {
			t.Errorf("%s: description of %d bytes", tool.Name, len(tool.Description))
		}
		if bytes.Contains(b, []byte("null")) && !strings.Contains(tool.Description, "null") {
			t.Errorf("%s: null in its schemas", tool.Name)
		}
	}
	if input > 14<<10 || whole > 64<<10 {
		t.Errorf("tools/list: descriptions and input schemas %d bytes (at most 14 KiB), whole %d (at most 64 KiB)", input, whole)
	}
	if len(instructions) > 1536 {
		t.Errorf("instructions of %d bytes", len(instructions))
	}
}

// TestReportsHoldNoNull checks every report type: a list is never null.
func TestReportsHoldNoNull(t *testing.T) {
	for _, tool := range All() {
		for i := range tool.Out.NumField() {
			f := tool.Out.Field(i)
			if f.Type.Kind() == reflect.Map {
				t.Errorf("%s: field %s is a map, whose nil is null", tool.Name, f.Name)
			}
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	ps := listGuests.Params
	for b.Loop() {
		var in listGuestsIn
		if err := decode(ps, json.RawMessage(`{"limit":5,"node":"pve1","template":true}`), &in); err != nil {
			b.Fatal(err)
		}
	}
}

// TestALineThatIsNoMessageEndsNothing: it is answered, and so is the next one.
func TestALineThatIsNoMessageEndsNothing(t *testing.T) {
	w := dialServer(t, t.Context(), replay(t, fixtures.Heimlabor(), fixtures.Options{}), All())
	w.hello()
	for i, c := range []struct {
		line string
		code int // 0: no answer
	}{
		{"not json", -32700},
		{`{"jsonrpc":"2.0","id":5,"method":"ping"`, -32700},
		{`{"jsonrpc":"2.0","method":"ping","params":{"x":"` + strings.Repeat("x", maxFrame) + `"}}`, -32600},
		{`{"jsonrpc":"1.0","id":5,"method":"ping"}`, -32600},
		{`[{"jsonrpc":"2.0","id":5,"method":"ping"}]`, -32600},
		{`"text"`, -32600},
		{`{}`, -32600},
		{`{"jsonrpc":"2.0"}`, -32600},
		{`{"jsonrpc":"2.0","id":null}`, -32600},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600},
		{`{"jsonrpc":"2.0","id":5,"method":7}`, -32600},
		{"", 0},
		{" \t", 0},
		{`{"jsonrpc":"2.0","method":"nothing/known"}`, 0},
	} {
		w.send("%s", c.line)
		if c.code != 0 {
			if r, ok := w.read(); !ok || r.Error == nil || r.Error.Code != c.code || r.ID != 0 {
				t.Fatalf("%.60s: got %s, want error %d", c.line, r.Raw, c.code)
			}
		}
		w.send(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, 30+i)
		if r := w.reply(30 + i); r.Error != nil {
			t.Errorf("after %.60s: %s", c.line, r.Raw)
		}
	}
	// Nobody waits for the reply to a request that has no id.
	w.send(`{"jsonrpc":"2.0","id":null,"method":"ping"}`)
	w.in.Close()
	if err := <-w.done; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestBatchesOfTheVersionThatHasThem(t *testing.T) {
	w := dialServer(t, t.Context(), replay(t, fixtures.Heimlabor(), fixtures.Options{}), All())
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	w.reply(1)
	w.send(`[{"jsonrpc":"2.0","id":5,"method":"ping"},{"jsonrpc":"2.0","id":6,"method":"ping"}]`)
	if !w.out.Scan() || !strings.HasPrefix(w.out.Text(), `[{"jsonrpc":"2.0","id":`) {
		t.Errorf("batch: %s", w.out.Text())
	}
}
