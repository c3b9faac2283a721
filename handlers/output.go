package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"schedrestd/api"
	"schedrestd/api/scope"
	"schedrestd/auth"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// OutputFiles reads files of users, as these users: the output of their jobs.
type OutputFiles interface {
	// Of returns what reads the files of the user of a request with a verified
	// credential. Its errors are Denied, Unavailable, and Unauthenticated for a
	// token that is no longer accepted.
	Of(ctx context.Context, c auth.Credential) (UserFiles, error)
}

// UserFiles reads files of one user.
type UserFiles interface {
	// Owner returns the uid of this user.
	Owner() uint32

	// ReadOutput returns a part of a file. Its errors are NotFound, Denied,
	// Unsupported for a file that is not read because of what it is, and
	// Unavailable, for example because a file system does not answer.
	ReadOutput(ctx context.Context, part OutputPart) (OutputData, error)
}

// OutputPart names a part of the file at Path. If Lines is not 0, it begins with
// the last but Lines line, and Offset has no effect.
type OutputPart struct {
	Path   string
	Offset uint64 // in bytes
	Max    int    // number of bytes; 0 for facts about the file alone
	Lines  uint32
}

// OutputData is a part of a file.
type OutputData struct {
	File   OutputFile
	Size   uint64 // of the file, in bytes
	Offset uint64 // of Data
	Data   []byte // shorter than asked for if the file ends, or if the answer has no space for more
}

// OutputFile identifies a file for as long as it exists.
type OutputFile struct{ Device, Inode uint64 }

// A file that a client follows is looked at four times in each WatchInterval, and less
// and less often while it does not grow, down to once in three quarters of it: a look takes
// a tenth of a millisecond, and a network file system asks its server. If the file has not grown for
// two of them, the controller is asked whether the job has ended. A network file system
// may show the last lines that late. While the job writes nothing, the controller is
// asked less and less often, too, and requests for the same job share its answer.
func (o *output) poll(quiet time.Duration) time.Duration {
	return max(o.WatchInterval/4, min(quiet/8, 3*o.WatchInterval/4))
}

// getJobOutput returns the function for the standard output or the error output of a
// job.
func (h *handler) getJobOutput(stderr bool) func(*rest.Call, *api.OutputParams) error {
	return func(c *rest.Call, p *api.OutputParams) error {
		o := &output{handler: h, c: c, params: p, path: api.Stdout, stderr: stderr}
		if stderr {
			o.path = api.Stderr
		}
		if err := o.look(c.Context()); err != nil {
			return err
		}
		if err := c.RecordAccess(c.Param("job_id")); err != nil {
			return err
		}
		if c.FollowsEvents() || p.Follow {
			return o.follow()
		}
		return o.send()
	}
}

// stepFile returns the path of the file of a step, which only accounting has.
func (o *output) stepFile() (file string, err error) {
	if o.Accounting == nil || o.Cluster == "" || !o.c.Permits(scope.SlurmdbRead) {
		return "", errs.New(errs.Unsupported, "only accounting names the files of steps, and it can't be read here").WithSource(rest.InQuery + "step")
	}
	err = recordsOf[model.AccountingJob](o.handler, o.c, o.jobFilter(defaultJobFlags, o.params.Job))(func(j *model.AccountingJob) error {
		if stdout, stderr := api.StepOutput(j, o.params.Step.Number); o.stderr {
			file = cmp.Or(file, stderr)
		} else {
			file = cmp.Or(file, stdout)
		}
		return nil
	})
	return file, err
}

// output is a request for a file of a job.
type output struct {
	*handler
	c      *rest.Call
	params *api.OutputParams
	path   func(*api.JobRow) string
	stderr bool // it is the error output

	files UserFiles
	file  string // path of the file
	ended bool   // the job has ended
	begun bool   // the job has started
}

// look asks the controller for the job, and checks that the client may have its
// output. After an error, o is as it was before.
func (o *output) look(ctx context.Context) error {
	if o.Output == nil {
		return errs.New(errs.Unsupported, "this gateway does not read the output of jobs").
			WithHint("an administrator can permit it with SCHEDRESTD_OUTPUT")
	}
	row, err := o.job(ctx)
	if err != nil {
		return err
	}
	client := o.c.Client()
	files, err := o.Output.Of(ctx, client)
	if err != nil {
		return err
	}
	owner := files.Owner()
	isOwner := client.Local && client.UID == owner || !client.Local && o.userID(o.c, o.c.User()) == model.Some(owner)
	if row.UserID != owner || !isOwner {
		return errs.New(errs.Denied, "only the user of a job can read its output, and only at a gateway that serves this user").WithSource(rest.InPath + "job_id")
	}
	file := o.path(row)
	if o.params.Step.Set {
		if file, err = o.stepFile(); err != nil {
			return err
		}
	}
	switch {
	case file == "/dev/null":
		return errs.New(errs.Denied, "this output goes to /dev/null, so there is nothing to read").WithSource(rest.InPath + "job_id")
	case file != "" && row.HetJobOffset > 0 && !o.params.Step.Set: // the controller names a file that no process writes
		return errs.New(errs.NotFound, "only the first component of a heterogeneous job runs the script").WithSource(rest.InPath+"job_id").
			WithHint("name job %d", row.HetJobID)
	case file != "":
		o.files, o.file, o.ended, o.begun = files, file, hasEnded(row.State), hasStarted(row.State)
		return nil
	case o.params.Step.Set:
		return errs.New(errs.NotFound, "accounting names no such file of step %d", o.params.Step.Number).WithSource(rest.InQuery + "step").
			WithHint("from Slurm 25.05 on it names the files of steps with an option such as --output; other steps write to the files of the job")
	}
	return errs.New(errs.NotFound, "the job has no such file, because it has no batch script").WithSource(rest.InPath + "job_id").
		WithHint("srun and salloc show the output where they run; for a file that srun writes, add step=0")
}

// job returns the record of the job, from accounting if the controller no longer
// has it.
func (o *output) job(ctx context.Context) (row *api.JobRow, err error) {
	job := o.params.Job
	name, matches := partOf(job)
	var found []model.Job
	_, err = o.Controller.Job(ctx, o.c.Credential(), job.JobID, model.Query{Flags: model.ShowAll, Without: model.JobAllocation | model.JobNodeIndexes}, func(j *model.Job) error {
		if matches(j) && len(found) < 2 {
			found = append(found, *j)
		}
		return nil
	})
	if errs.KindOf(err) == errs.NotFound || err == nil && len(found) == 0 {
		found, err = o.recordedJob(o.c, job)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(found) == 0:
		return nil, missingJob(job)
	case found[0].ArrayJobID != 0 && !job.ArrayTaskID.Set && (len(found) > 1 || found[0].ArrayTasks != ""):
		return nil, errs.New(errs.Invalid, "%s is an array, and each of its tasks has files of its own", name).WithSource(rest.InPath+"job_id").
			WithHint("name a task, such as %d_1", job.JobID)
	}
	row = &api.JobRow{Job: &found[0], Users: o.Users} // of a heterogeneous job the first component, which runs the script
	if job.ArrayTaskID.Set {
		row.ArrayTaskID = job.ArrayTaskID // a task that waits has its record together with others
	}
	return row, nil
}

// read reads a part of the file. Its errors name the file, which the client knows
// from the job's record.
func (o *output) read(ctx context.Context, part OutputPart) (OutputData, error) {
	part.Path = o.file
	data, err := o.files.ReadOutput(ctx, part)
	if e, ok := errors.AsType[*errs.Error](err); ok {
		copied := *e
		copied.Message = o.file + ": " + e.Message
		if err = &copied; e.Kind == errs.NotFound && !o.begun {
			copied.Message, copied.Hint = "the job has not started, so it has no output yet", ""
		}
	}
	return data, err
}

// send answers with the file as it is now, or with the part that the request
// selects.
func (o *output) send() error {
	first, err := o.read(o.c.Context(), OutputPart{Max: maxOutputPart, Lines: o.params.Tail})
	if err != nil {
		return err
	}
	status, at, end := http.StatusOK, first.Offset, first.Size
	o.c.Header().Set("Accept-Ranges", "bytes")
	if ranges := o.c.Request().Header.Values("Range"); len(ranges) == 1 && o.params.Tail == 0 && o.c.Request().Method == http.MethodGet && o.c.Request().Header.Get("If-Range") == "" {
		switch from, to, ok := byteRange(ranges[0], first.Size); {
		case ok && from >= to:
			o.c.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", first.Size))
			return errs.New(errs.RangeNotSatisfiable, "the file has only %d bytes", first.Size)
		case ok:
			status, at, end = http.StatusPartialContent, from, to
			o.c.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, first.Size))
		}
	}
	return o.c.SendPlain(status, end-at, func(w io.Writer) error {
		data := first
		for at < end {
			if at != data.Offset || len(data.Data) == 0 {
				if data, err = o.read(o.c.Context(), OutputPart{Offset: at, Max: int(min(end-at, maxOutputPart))}); err != nil {
					return err
				}
				if data.File != first.File || len(data.Data) == 0 {
					return errs.New(errs.Conflict, "the file has become shorter, or was replaced, while it was sent")
				}
			}
			text := data.Data[:min(uint64(len(data.Data)), end-at)]
			if _, err := w.Write(text); err != nil {
				return err
			}
			at += uint64(len(text))
			data.Data = nil
		}
		return nil
	})
}

// maxOutputPart is the number of bytes that are asked for at once.
const maxOutputPart = 30_000

// byteRange parses a Range header with one range of bytes (RFC 9110, 14.1.2). It
// returns the range in a file of the given size. If ok is false, the header has
// no effect.
func byteRange(header string, size uint64) (from, to uint64, ok bool) {
	unit, text, ok := strings.Cut(header, "=")
	ok = ok && strings.EqualFold(unit, "bytes")
	first, last, hasDash := strings.Cut(strings.TrimSpace(text), "-")
	if !ok || !hasDash || strings.Contains(last, ",") {
		return 0, 0, false
	}
	n, err := strconv.ParseUint(cmp.Or(first, last), 10, 63)
	if err != nil {
		return 0, 0, false
	}
	if first == "" { // an empty file has no range, but all of its last bytes
		return size - min(n, size), size, size > 0
	}
	to = size
	if last != "" {
		end, err := strconv.ParseUint(last, 10, 63)
		if err != nil || end < n {
			return 0, 0, false
		}
		to = min(size, end+1)
	}
	return n, to, true
}

// follow sends the file, and then what the job writes, until the job has ended.
func (o *output) follow() error {
	f := &followed{output: o, grown: time.Now(), looked: time.Now()}
	if id := o.c.Request().Header.Get("Last-Event-ID"); id != "" && o.c.FollowsEvents() {
		f.known = parseOutputID(id, &f.file, &f.at)
	}
	data, err := o.read(o.c.Context(), OutputPart{Max: 1, Lines: o.params.Tail})
	switch {
	case err == nil && !f.known:
		f.file, f.at, f.known = data.File, data.Offset, true
	case err != nil && errs.KindOf(err) != errs.NotFound:
		return err // with a status, which an event would not have
	case err != nil && o.ended:
		return err
	}
	return o.c.FollowText(f.next)
}

// followed is a file that a client follows.
type followed struct {
	*output
	file   OutputFile
	at     uint64    // how far the client has the file
	known  bool      // the client knows of the file
	grown  time.Time // when the file was last seen to grow
	looked time.Time // when the job was last looked at
}

// lookEvery returns the time between two looks at the job, if the file has not grown
// for the time quiet, and between the job's end and that of the text.
func (f *followed) lookEvery(quiet time.Duration) time.Duration {
	if f.ended {
		quiet = 0
	}
	return min(max(quiet/4, 2*f.WatchInterval), 15*f.WatchInterval)
}

// next returns the next part of the file. If there is none when ctx ends, it
// returns nil.
func (f *followed) next(ctx context.Context) (*rest.TextPart, error) {
	for {
		part, err := f.nextPart(ctx)
		if part != nil || err != nil && ctx.Err() == nil {
			return part, err
		}
		quiet := time.Since(f.grown)
		switch every := f.lookEvery(quiet); {
		case quiet < every || time.Since(f.looked) < every:
		case f.ended:
			return nil, io.EOF
		default:
			if err := f.lookAgain(); err != nil {
				return nil, err
			}
		}
		select {
		case <-time.After(f.poll(quiet)):
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// lookAgain asks the controller whether the job has ended. If it has, the file is
// looked at for a while longer. A controller that can't be reached is asked again
// later: the job goes on without it.
func (f *followed) lookAgain() error {
	f.looked = time.Now()
	err := f.look(f.c.Recent(f.WatchInterval))
	switch errs.KindOf(err) {
	case errs.NotFound:
		f.ended = true // the controller has forgotten it
		return nil
	case errs.Unavailable, errs.Timeout:
		return nil
	}
	return err
}

func (f *followed) nextPart(ctx context.Context) (*rest.TextPart, error) {
	data, err := f.read(ctx, OutputPart{Offset: f.at, Max: maxOutputPart})
	if errs.KindOf(err) == errs.NotFound {
		return nil, nil // it does not exist yet, or its successor does not
	}
	if err != nil {
		return nil, err
	}
	part := &rest.TextPart{}
	if f.known && (data.File != f.file || data.Size < f.at) {
		data, err = f.read(ctx, OutputPart{Max: maxOutputPart})
		switch {
		case errs.KindOf(err) == errs.NotFound:
			return nil, nil
		case err != nil:
			return nil, err
		}
		part.Reset, f.at = true, 0
	}
	f.file, f.known = data.File, true
	text := data.Data
	if f.c.FollowsEvents() && (!f.ended || f.at+uint64(len(text)) < data.Size) { // the rest of the last character follows
		text = text[:len(text)-incomplete(text)]
	}
	if len(text) == 0 && !part.Reset {
		return nil, nil
	}
	part.Offset, part.Text = f.at, text
	f.at += uint64(len(text))
	f.grown = time.Now()
	file := f.file
	part.ID = func(end uint64) string { return outputID(file, end) }
	return part, nil
}

// incomplete returns the length of a character at the end of text of which only
// the beginning is there, or 0 if there is none.
func incomplete(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// outputID returns the id of the event after which the client has a file up to
// offset at.
func outputID(file OutputFile, at uint64) string {
	return fmt.Sprintf("%x-%x-%d", file.Device, file.Inode, at)
}

// parseOutputID parses an id of outputID. If it is none, the client begins anew.
func parseOutputID(id string, file *OutputFile, at *uint64) (ok bool) {
	var f OutputFile
	var n uint64
	if _, err := fmt.Sscanf(id, "%x-%x-%d", &f.Device, &f.Inode, &n); err != nil || outputID(f, n) != id {
		return false
	}
	*file, *at = f, n
	return true
}
