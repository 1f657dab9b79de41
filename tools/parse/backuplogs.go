package parse

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// BackupLog is the last backup run of one guest on this node. Times are the
// node's local time without a zone, as 2006-01-02 15:04:05. SizeBytes is
// rounded by the log. A run that neither finished nor failed is under way, or
// was cut off.
type BackupLog struct {
	Kind     string // lxc or qemu
	VMID     int
	Started  string
	Ended    string // when it finished or failed
	Seconds  *int64 // how long it took, when it finished
	Mode     string // snapshot, suspend, stop
	Size     *int64
	Finished bool
	Failed   bool
	Failure  string   // why, as vzdump says it
	Errors   []string // all error lines
	Warnings []string
}

// BackupLogs reads the form backup-logs, by VMID. An empty output is a node
// without backup runs. A line that cannot be read becomes a note.
//
// Program: grep -rsao on /var/log/vzdump of PVE 7.4 to 9.2. Input:
//
//	/var/log/vzdump/lxc-102.log:2026-11-29 02:30:41 ERROR: Backup of VM 102 failed - command 'mount' failed: exit code 32
func BackupLogs(out []byte) ([]BackupLog, []Note, error) {
	logs := map[string]*BackupLog{}
	_, notes, err := eachLine("backup logs", "/var/log/vzdump/KIND-VMID.log:TIME LEVEL: TEXT", out, func(line string) (struct{}, bool) {
		path, text, _ := strings.Cut(line, ".log:")
		log := logs[path]
		if log == nil {
			var ok bool
			if log, ok = openBackupLog(path); !ok {
				return struct{}{}, false
			}
		}
		ok := log.line(text)
		if ok {
			logs[path] = log
		}
		return struct{}{}, ok
	})
	if err != nil {
		return nil, nil, err
	}
	items := make([]BackupLog, 0, len(logs))
	for _, l := range logs {
		items = append(items, *l)
	}
	slices.SortFunc(items, func(a, b BackupLog) int { return cmp.Or(cmp.Compare(a.VMID, b.VMID), strings.Compare(a.Kind, b.Kind)) })
	return items, notes, nil
}

func openBackupLog(path string) (*BackupLog, bool) {
	name, ok := strings.CutPrefix(path, "/var/log/vzdump/")
	kind, id, ok2 := strings.Cut(name, "-")
	vmid, err := strconv.Atoi(id)
	if !ok || !ok2 || err != nil || vmid <= 0 || (kind != "lxc" && kind != "qemu") {
		return nil, false
	}
	return &BackupLog{Kind: kind, VMID: vmid}, true
}

// line reads one log line; a second start in one file begins anew.
func (l *BackupLog) line(text string) bool {
	const timeLength = len("2006-01-02 15:04:05")
	if len(text) < timeLength+2 || text[timeLength] != ' ' || text[10] != ' ' {
		return false
	}
	at := text[:timeLength]
	level, message, ok := strings.Cut(text[timeLength+1:], ": ")
	message = strings.TrimSpace(message)
	switch {
	case ok && level == "INFO":
		return l.info(at, message)
	case ok && level == "WARN":
		l.Warnings = append(l.Warnings, message)
	case ok && level == "ERROR":
		l.Errors = append(l.Errors, message)
		if reason, ok := strings.CutPrefix(message, "Backup of VM "+strconv.Itoa(l.VMID)+" failed - "); ok {
			l.Failed, l.Failure, l.Ended = true, reason, at
		}
	default:
		return false
	}
	return true
}

func (l *BackupLog) info(at, message string) bool {
	if strings.HasPrefix(message, "Starting Backup of VM ") {
		*l = BackupLog{Kind: l.Kind, VMID: l.VMID, Started: at}
		return true
	}
	if rest, ok := strings.CutPrefix(message, "Finished Backup of VM "); ok {
		_, clock, _ := strings.Cut(rest, " ")
		l.Finished, l.Ended, l.Seconds = true, at, parseClockTime(strings.Trim(clock, "()"))
		return true
	}
	if mode, ok := strings.CutPrefix(message, "backup mode: "); ok {
		l.Mode = mode
		return true
	}
	if size, ok := strings.CutPrefix(message, "archive file size: "); ok {
		l.Size = parseSize(strings.TrimSuffix(size, "B"))
		return true
	}
	return strings.HasPrefix(message, "backup mode") || strings.HasPrefix(message, "archive file size")
}

// parseClockTime reads 00:01:38, hours may have more digits, as seconds.
func parseClockTime(s string) *int64 {
	f := strings.Split(s, ":")
	if len(f) != 3 {
		return nil
	}
	total := int64(0)
	for _, part := range f {
		n := parseInt(part)
		if n == nil || *n < 0 || *n > 1<<30 {
			return nil
		}
		total = total*60 + *n
	}
	return &total
}
