package option

import (
	"math"
	"time"

	"schedrestd/ipc"
)

// A variable is an environment variable, with its name in our spelling. It sets
// options that the command line has not set.
type variable struct {
	name string
	set  func(name, value string) error
}

// variables lists every variable that has an effect, and where its value goes. If
// two variables set the same option, the one later in this list has precedence.
//
// The comment above a row is the variable's entry in schedrestd(8). A row without
// one shares the entry of the row above. Lines that begin with # are for the
// example deploy/examples/schedrestd.env. After a change, run go test -update.
func (o *Options) variables() []variable {
	run, s := &o.Run, &o.Setup
	return []variable{
		// If this is set, the program prints the stacks of all goroutines on standard
		// error after a fatal error, and then ends with SIGABRT.
		// The kernel can write a core file only before the gateway opens its sockets.
		{"ABORT_ON_FATAL", ignore}, // schedrestd reads it

		// The configuration, if
		// .Fl f
		// is not given.
		// # Configuration of the cluster. Without this setting, the gateway reads the first of these files
		// # that exists: /etc/sched/sched.conf, /etc/slurm/slurm.conf, or the copy that slurmd or sackd has
		// # fetched (/run/slurm/conf/slurm.conf).
		// #SCHED_CONF=/etc/slurm/slurm.conf
		{"SCHED_CONF", ignore}, // conf.Reader.Find reads it

		// As
		// .Fl -conf-server ,
		// but a configuration file has precedence: one that
		// .Fl f
		// or
		// .Ev SCHED_CONF
		// names, or that exists at one of the usual places.
		// # Without a file, fetch slurm.conf from these controllers.
		// #SLURM_CONF_SERVER=ctl1:6817,ctl2:6817
		{"SCHED_CONF_SERVER", o.setConfServer},

		// The file of the CAs that sign the certificates of the controllers, in PEM.
		// With it the configuration is fetched with TLS only.
		// It also takes the place of
		// .Pa ca_cert.pem
		// for all daemons, unless the configuration has
		// .Li ca_cert_file= .
		{"SCHEDRESTD_CONF_CA", path(&o.ConfCA)},

		// The directory for copies of a configuration that was fetched from a controller,
		// for a start while no controller answers.
		// It must belong to the user who starts the gateway, and no other user may write to
		// it.
		// If root starts the gateway, it must belong to the user of schedrestd-config: see
		// .Sx FILES .
		// The default is
		// .Pa /var/cache/schedrestd-config .
		{"SCHEDRESTD_CONF_CACHE", path(&o.ConfCache)},

		// A file with a token that authenticates the request for the configuration.
		// Only its owner and group may be able to read it.
		// It is needed at each start and reload, so renew it before it expires.
		// Without it, the request is authenticated by munged or sackd on this machine.
		{"SCHEDRESTD_CONF_TOKEN", path(&o.ConfToken)},

		// Debug flags, in place of
		// .Sq DebugFlags
		// in the configuration.
		// For the gateway, each of AuditRPCs, AuditTLS, Conmgr, Data, Network, NetworkRaw,
		// Protocol and TLS sets the log level to
		// .Cm debug ,
		// unless
		// .Fl v
		// or a log level
		// is given.
		// Other flags are for other daemons and have no effect here.
		{"SCHED_DEBUG_FLAGS", list(&o.debugFlags)},

		// Must be
		// .Cm daemon ;
		// otherwise the gateway does not serve
		// .Cm rest_auth/jwt .
		{"SCHED_JWT", text(&o.JWT)},

		// The socket that issues credentials for
		// .Cm rest_auth/local
		// if the configuration has
		// .Li AuthType=auth/slurm .
		// The default is the list of sockets at which Slurm's commands look for sackd,
		// slurmctld and slurmdbd.
		{"SCHED_SACK_SOCKET", path(&o.SackSocket)},

		// The key set of auth/slurm, as for Slurm's daemons, if it is not
		// .Pa slurm.jwks
		// beside the configuration.
		// Only
		// .Ev SCHEDRESTD_TOKEN_MODE Ns = Ns Cm signed
		// uses it.
		{"SCHED_SACK_JWKS", path(&o.SackJWKS)},

		// The key of auth/slurm, as for Slurm's daemons, if there is no key set and it is not
		// .Pa slurm.key
		// beside the configuration.
		{"SCHED_SACK_KEY", path(&o.SackKey)},

		// How JSON is written:
		// .Cm compact
		// .Pq the default
		// or
		// .Cm pretty .
		// Slurm's words
		// .Li no_tag
		// .Pq for JSON
		// and
		// .Li complex
		// .Pq also for YAML
		// only cause a warning.
		// If both variables are set, the one with the longer name counts.
		{"SCHED_JSON", o.layout(&o.JSON, "compact", "pretty")},
		{"SCHEDRESTD_JSON", o.layout(&o.JSON, "compact", "pretty")},

		// How YAML is written:
		// .Cm pretty
		// .Pq in blocks
		// or
		// .Cm compact
		// .Pq on one line .
		// Each value has a tag with its data type, as in the answers of
		// .Xr slurmrestd 8 ,
		// unless
		// .Cm no_tag
		// is given, too.
		// The default is
		// .Cm pretty,no_tag .
		// If both variables are set, the one with the longer name counts.
		{"SCHED_YAML", o.layout(&o.YAML, "compact", "pretty", "no_tag")},
		{"SCHEDRESTD_YAML", o.layout(&o.YAML, "compact", "pretty", "no_tag")},

		// The time limit for a message to slurmdbd and its answer, such as
		// .Li 900s ,
		// the default, which is also the limit of Slurm's own clients.
		// It is at least 1s and at most 15m.
		// A change with many messages may take three times as long.
		// Connecting to slurmdbd and authenticating are limited by
		// .Li MessageTimeout .
		// If a change is not answered in this time, the answer has the code
		// .Li outcome_unknown .
		{"SCHEDRESTD_ACCOUNTING_TIMEOUT", duration(&s.Limits.Accounting, time.Second, 15*time.Minute, "900s")}, // 3.5 times as much must be less than dispatcher.Limits.RetireLimit

		// The memory that each worker may use for large request bodies, and for answers of
		// daemons that clients have not received yet.
		// It is a number of bytes, or a number with
		// .Cm K , M
		// or
		// .Cm G
		// after it.
		// The default is 256M.
		// If you increase it, increase
		// .Li MemoryMax=
		// in the service's unit by the same factor.
		// .Pp
		// A worker reads a whole list from the daemon without waiting for the client, and
		// then sends it as fast as the client receives it.
		// Lists are stored compressed, which usually reduces them to a tenth or less.
		// One eighth of the memory is reserved for short lists.
		// For each token or local user, the worker stores either a single list of any
		// length, or several lists that together fit into one half of the memory.
		// While there is no memory for the rest of a list, the worker reads this rest only
		// as fast as the client receives it, so a slow client delays the daemon.
		// slurmctld closes such a connection after
		// .Li MessageTimeout .
		// A worker has at most 12 connections for long lists, 6 of them for each token or
		// local user.
		// Further requests for lists wait for at most half as long as a call to a daemon may
		// take; then the worker answers 503.
		// .Pp
		// For HTTP/1.0, and in inetd mode, the worker stores the compressed answer in
		// the same memory until the length of the answer is known.
		// If the memory is too small, the worker sends the answer without a length.
		// It then marks the end of the answer by closing the connection or, with HTTP/1.1,
		// by the last chunk.
		// .Pp
		// The first MiB of each request body does not count towards this memory.
		// If there is currently no memory for a body, the worker answers 503.
		// If a body is longer than half of the memory less 4 MiB, the worker answers 413.
		{"SCHEDRESTD_ANSWER_MEMORY", flagValue((*size)(&s.Limits.Answers))},

		// Whether clients can make changes while the audit log can't be written.
		// With
		// .Cm closed
		// .Pq the default
		// the gateway refuses them with 503, before it sends anything to the controller,
		// and still serves reads.
		// With
		// .Cm open
		// it makes changes without a record.
		// If this is set without
		// .Ev SCHEDRESTD_AUDIT_LOG ,
		// the gateway does not start.
		{"SCHEDRESTD_AUDIT_FAIL", o.auditWord(word(&run.Audit.FailOpen, "open", "open", "closed"))},

		// The absolute path of the audit log, or
		// .Cm stderr .
		// The gateway writes a line of JSON before each change that a client makes through
		// it, and another line after the change; see AUDIT.md.
		// The gateway creates the file with mode 0600.
		// The file must belong to the user who starts the gateway, and others must have
		// no access to it.
		// No other user may be able to write to its directory.
		// The gateway opens the file again on
		// .Dv SIGHUP .
		// Without this variable changes are not recorded.
		{"SCHEDRESTD_AUDIT_LOG", o.setAudit},

		// Whether a change waits until its line is on the disk:
		// .Cm yes
		// or
		// .Cm no
		// .Pq the default .
		// If this is set without
		// .Ev SCHEDRESTD_AUDIT_LOG ,
		// or to
		// .Cm yes
		// with
		// .Cm stderr ,
		// the gateway does not start.
		{"SCHEDRESTD_AUDIT_SYNC", o.auditWord(word(&run.Audit.Sync, "yes", "yes", "no"))},

		// As
		// .Fl a .
		{"SCHEDRESTD_AUTH_TYPES", names(&o.Auth)},

		// As
		// .Fl d .
		{"SCHEDRESTD_DATA_PARSER_PLUGINS", names(&o.Parsers)},

		// As
		// .Fl s .
		{"SCHEDRESTD_OPENAPI_PLUGINS", names(&o.Content)},

		// Clusters to which the page
		// .Pa /status
		// links, separated by commas:
		// .Sm off
		// .Ar name Cm =https:// Ar host .
		// .Sm on
		// A path may follow, as in
		// .Cm b=https://sched.example.org/clusters/b .
		// All gateways can have the same list: the page does not link to itself.
		// Anyone who can connect to the gateway can read the list.
		// # Link the status page to those of other clusters.
		// #SCHEDRESTD_CLUSTERS=a=https://a.sched.example.org,b=https://b.sched.example.org
		{"SCHEDRESTD_CLUSTERS", o.setClusters},

		// The network namespace from which the gateway connects to controllers and
		// accounting daemons, written as in
		// .Ev SCHEDRESTD_NETNS .
		// The default is the namespace in which the gateway starts.
		// The gateway always looks up host names in the namespace in which it starts,
		// also when it looks up the host of a daemon again that it can't reach.
		// This variable affects only TCP, because UNIX sockets are in no network
		// namespace.
		// If
		// .Sq AuthInfo=socket=
		// names a UNIX socket of the controller, and the gateway serves
		// .Cm rest_auth/local
		// on a local socket, the gateway tries the controller's UNIX socket before TCP.
		{"SCHEDRESTD_CONTROLLER_NETNS", netns(&run.ControllerNetns)},

		// Origins whose web pages may use the API from a browser (CORS), separated by
		// commas, as browsers send them:
		// .Cm https://portal.example.org,http://127.0.0.1:8080 .
		// There is no form for all origins.
		// A page needs a token to read answers: it can't use cookies, passwords or client
		// certificates of the browser, nor the user of a connection over a UNIX socket.
		// By default pages of other servers can't read any answer, and the gateway answers
		// 403 to their requests that would change something.
		// Behind a proxy that authenticates users, a page of these origins can cause
		// changes as the user of the browser.
		// # Let web pages of this portal use the API with the token of their user.
		// #SCHEDRESTD_CORS_ORIGINS=https://portal.example.org
		{"SCHEDRESTD_CORS_ORIGINS", o.setOrigins},

		// As
		// .Ev SCHEDRESTD_DEBUG ,
		// which precedes it.
		{"SCHED_DEBUG", o.setDebug},

		// The log level: 0 to 9, or
		// .Cm quiet , fatal , error , info , verbose ,
		// .Cm debug , debug2 , debug3 , debug4 , debug5 .
		// The levels
		// .Cm debug2
		// to
		// .Cm debug5
		// log the same as
		// .Cm debug .
		// Ignored with
		// .Fl v .
		// The default is
		// .Cm info ,
		// which logs a line for each request.
		{"SCHEDRESTD_DEBUG", o.setDebug},

		// Versions of the API that clients should no longer use, separated by commas.
		// Each has the day from which it is deprecated, and may have the day from which it
		// will no longer be served, both at 00:00 UTC:
		// .Cm v0.0.40:2026-12-01:2027-06-01 .
		// All answers at the paths of such a version have the header
		// .Li Deprecation
		// (RFC 9745), and with a second day also
		// .Li Sunset
		// (RFC 8594).
		// The OpenAPI document marks the version's operations as deprecated.
		// The gateway continues to serve the version after both days, until
		// .Fl d
		// leaves it out.
		// By default no version is deprecated.
		// # Tell clients that v0.0.40 is deprecated from the first of these days, and that it will no longer
		// # be served from the second. The gateway serves it until you leave it out of the option -d.
		// #SCHEDRESTD_DEPRECATED=v0.0.40:2026-12-01:2027-06-01
		{"SCHEDRESTD_DEPRECATED", o.setDeprecated},

		// With
		// .Cm off
		// the gateway does not serve the page
		// .Pa /docs .
		// The default is
		// .Cm on .
		{"SCHEDRESTD_DOCS", word(&s.Docs, "on", "on", "off")},

		// Addresses and networks that get no penalties, separated by commas, such as
		// .Cm 192.0.2.7,10.0.0.0/8 .
		// Use this variable for portals and NATs that many users share.
		// Clients at these addresses are also exempt from the fair share of connections,
		// but not from
		// .Fl -max-per-source .
		// A loopback address exempts every user of this machine.
		// If the list has no loopback address, the gateway distinguishes users on the
		// loopback interface by their uids.
		// The uids of a range in
		// .Pa /etc/subuid
		// count as the user who owns the range.
		// All other uids without a user name together count as one client.
		{"SCHEDRESTD_EXEMPT", o.setExempt},

		// Host names, separated by commas, that a client of a UNIX socket that sends no
		// token may use in the header
		// .Li Host ,
		// such as
		// .Cm portal.example.org .
		// The gateway needs them if a browser uses the socket through a proxy that passes
		// on its
		// .Li Host .
		// It always permits
		// .Cm localhost ,
		// addresses, and this machine's names, and from programs other than browsers all
		// names without a dot.
		// It answers 403 to requests with any other name, as a web page can make its own
		// name stand for another machine (DNS rebinding).
		// # Host names with which browsers reach a UNIX socket through a proxy that adds no token.
		// #SCHEDRESTD_HOSTS=portal.example.org
		{"SCHEDRESTD_HOSTS", o.setHosts},

		// The absolute path of the file in which the auditor stores hashes of the
		// .Li Idempotency-Key
		// headers of submissions, and the answers to these submissions, for 24 hours; see
		// IDEMPOTENCY.md.
		// If a client repeats a submission with the same key, it gets the first answer,
		// and the gateway submits nothing.
		// The gateway creates the file with mode 0600; it grows to at most 128 MiB.
		// The rules for its owner, mode and directory are those of the audit log.
		// Several gateways on one machine may share it.
		// Without this variable the gateway answers 501 to a submission with an
		// .Li Idempotency-Key .
		// # Store Idempotency-Keys in this file. With such a key a client can safely repeat a submission.
		// # Without the file, a submission with a key gets the status 501.
		// #SCHEDRESTD_IDEMPOTENCY_FILE=/var/log/schedrestd/idempotency
		{"SCHEDRESTD_IDEMPOTENCY_FILE", o.setClaims},

		// With
		// .Cm on
		// the gateway looks for the job of an earlier request with the same
		// .Li Idempotency-Key
		// in the cluster before it submits one, and again afterwards, so that the gateways of
		// a cluster need not share the file; see IDEMPOTENCY.md.
		// The default is
		// .Cm off .
		// # With several gateways: look in the cluster for the job of an earlier request with the same key.
		// #SCHEDRESTD_IDEMPOTENCY_SEARCH=on
		{"SCHEDRESTD_IDEMPOTENCY_SEARCH", word(&s.SearchKeys, "on", "on", "off")},

		// The listeners, separated by commas, if there is no
		// .Ar listen
		// argument.
		// As in an argument, scopes may precede an address.
		{"SCHEDRESTD_LISTEN", o.setListen},

		// Where and how to log:
		// .Cm text
		// (the default) or
		// .Cm json
		// on standard error,
		// .Cm journald
		// with native fields, or
		// .Cm syslog
		// as RFC 5424.
		// The path of another socket may follow
		// .Cm journald
		// or
		// .Cm syslog ,
		// as in
		// .Ql syslog:/run/log .
		// The parent process always logs on standard error.
		// # Write the log as JSON on standard error. Other values send it to journald with fields, or to
		// # syslog.
		// #SCHEDRESTD_LOG=json
		{"SCHEDRESTD_LOG", o.setLog},

		// As
		// .Ev SCHEDRESTD_DEBUG ,
		// which they precede, but only for a log on standard error, or for one that
		// .Ev SCHEDRESTD_LOG
		// sends to syslog or journald.
		// A variable for the other destination causes a warning.
		{"SCHEDRESTD_DEBUG_STDERR", o.setDebugFor(toStderr)},
		{"SCHEDRESTD_DEBUG_SYSLOG", o.setDebugFor(toSocket)},

		// How old the data in a list from the controller may be, such as
		// .Cm 2s ;
		// at most
		// .Cm 1m ,
		// and
		// .Cm 0s
		// by default.
		// A worker then keeps the lists that it has read for this time, for each token or
		// local user apart, and answers further requests for them from its memory.
		// A change that is made through the worker makes it forget them.
		// But other workers, Slurm's commands and the controller itself also change things,
		// and an answer may then show the previous state for this time.
		// A request with the header
		// .Ql Cache-Control: no-cache
		// gets current data, and one with
		// .Ql Cache-Control: max-age=N
		// accepts data that is N seconds old, whatever this variable says.
		{"SCHEDRESTD_MAX_AGE", duration(&s.MaxAge, 0, time.Minute, "2s")},

		// As
		// .Fl -max-connections .
		{"SCHEDRESTD_MAX_CONNECTIONS", unset(&run.Connections, flagValue(number{&run.Connections, 1, ipc.MaxConnections}))},

		// How long a request with the parameter
		// .Cm wait
		// may wait for a change, such as
		// .Cm 30s ;
		// at most
		// .Cm 1h ,
		// and
		// .Cm 60s
		// by default, because many proxies close a connection on which nothing is sent for
		// longer.
		// A longer
		// .Cm wait
		// is shortened to this time.
		// With
		// .Cm 0s
		// no request waits.
		{"SCHEDRESTD_MAX_WAIT", duration(&s.MaxWait, 0, time.Hour, "60s")},

		// The lowest uid of a user for whom the token of a portal acts: see
		// .Sx GATEWAY TOKENS .
		// The default is 1000, because lower ones belong to users of the system.
		{"SCHEDRESTD_MIN_UID", flagValue(number{&s.MinUID, 1, math.MaxInt32})},

		// As
		// .Fl -metrics .
		{"SCHEDRESTD_METRICS", unset(&o.Metrics, text(&o.Metrics))},

		// The network namespace in which the gateway opens TCP ports: a name of
		// .Xr ip-netns 8
		// or an absolute path, such as
		// .Pa /proc/ Ns Ar pid Ns Pa /ns/net .
		// The gateway must start as root with CAP_SYS_ADMIN, which it drops afterwards.
		// Therefore it keeps this namespace even if the name is removed or given to
		// another namespace.
		// To change the namespace, restart the gateway.
		// UNIX sockets, and sockets that a service manager passes, are not affected.
		{"SCHEDRESTD_NETNS", netns(&run.Netns)},

		// Penalties for clients that guess credentials, send malformed requests or crash
		// workers, or
		// .Cm off
		// for none.
		// A client is an address, a /64 of IPv6, or a local user.
		// A client has a debt, in seconds, for each kind of offence.
		// Every debt shrinks by one second each second.
		// Each offence adds to the debt of its kind, by default the number of seconds in
		// parentheses:
		// .Pp
		// .Bl -tag -width Ds -compact
		// .It Cm auth Pq 1s
		// the gateway rejects a credential with 401
		// .It Cm malformed Pq 1s
		// the gateway can't read a request
		// .It Cm crash Pq 15s
		// a worker crashes while it answers the client
		// .El
		// .Pp
		// If a debt exceeds
		// .Cm threshold
		// .Pq 30s ,
		// the gateway blocks the client.
		// The first block lasts as many seconds as the offence has added.
		// Each further block lasts twice as long as the one before, up to ten times as
		// long as the first.
		// The gateway answers new connections of a blocked client with 429 and
		// .Li Retry-After
		// and closes them; over TLS it closes them without an answer.
		// On the client's open connections it answers the next request the same way and
		// closes the connection.
		// Example:
		// .Cm auth:1s,threshold:1m .
		// Numbers that the value does not name keep their defaults.
		// .Pp
		// The following add nothing to a debt: a credential that the gateway has rejected
		// before; a token that has expired, unless the gateway has a key and finds the
		// token forged, which it does not try with gateway tokens; and a worker that
		// another process kills.
		// .Pp
		// The following count as
		// .Cm malformed :
		// .Pp
		// .Bl -bullet -compact
		// .It
		// over HTTP/1, a request that the gateway refuses with 400, 414, 417, 431, 501 or
		// 505 before it has read all of it;
		// .It
		// the wrong protocol for the listener: TLS or plain HTTP on the wrong port, or
		// HTTP/2 without TLS;
		// .It
		// over TLS, input that is not a handshake, an unsupported version or cipher, a
		// missing client certificate where one is required, and a record that can't be
		// decrypted;
		// .It
		// over HTTP/2, a missing preface, a header over the limit
		// .Pq 431 ,
		// more frames without progress than a connection may send
		// .Po
		// 1000 at once, then 100 a second, and 8 more for each answer; DATA frames with at
		// least 32 bytes that the gateway reads do not count, nor does one
		// .Li WINDOW_UPDATE
		// for each 2 KiB of answers
		// .Pc ,
		// a stream that has no window for 1.25 s while other clients wait, and input that
		// the gateway answers with PROTOCOL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR,
		// COMPRESSION_ERROR or
		// .Li ENHANCE_YOUR_CALM .
		// .El
		// .Pp
		// After too many such frames the gateway also closes the connection; after 1.25 s
		// without a window it resets the stream.
		// Nothing else counts.
		// For example, a client may connect and send nothing or only a part of a header,
		// stop in its handshake, reject the gateway's certificate, or cause another error
		// of HTTP/2 such as STREAM_CLOSED.
		// A client certificate that has expired or that names an unknown user counts as a
		// rejected credential.
		{"SCHEDRESTD_PENALTIES", o.setPenalties},

		// The number of requests per second that each worker accepts from one user.
		// A number after a colon limits the requests that the worker accepts at once.
		// Its default is twice the first number.
		// Example:
		// .Cm 50:200 .
		// The worker answers further requests with 429.
		// By default there is no limit.
		{"SCHEDRESTD_RATE", o.setRate},

		// The statuses of responses that the OpenAPI document lists, by default
		// .Cm 200,default .
		{"SCHEDRESTD_RESPONSE_STATUS_CODES", o.setStatuses},

		// What the clients of an address that the service manager opens may do,
		// separated by commas, as in
		// .Ql compute.read+slurmdb.read=127.0.0.1:6822 .
		// With this variable the gateway does not start unless it listens on each of the
		// addresses.
		// .Sx SCOPES
		// describes scopes.
		// # Programs that use this socket can only read: exporters, monitors, agents.
		// #SCHEDRESTD_SCOPES=compute.read+slurmdb.read=127.0.0.1:6822
		{"SCHEDRESTD_SCOPES", o.setScopes},

		// With
		// .Cm sockets
		// users can read the output of their own jobs, also while a job runs.
		// A process with the user's uid and groups reads the files, in the sandbox that
		// .Sx OUTPUT
		// describes.
		// This needs
		// .Cm become_user ,
		// or a gateway that an ordinary user has started, which reads only the files of this user.
		// With
		// .Cm tokens
		// a gateway that root has started does the same for the users of tokens that its
		// .Cm jwt_key
		// or
		// .Cm jwks
		// verifies.
		// The default is
		// .Cm off .
		// A reload does not change it.
		// # Let users read the output of their jobs: with become_user, or (tokens) with a token.
		// #SCHEDRESTD_OUTPUT=sockets
		{"SCHEDRESTD_OUTPUT", o.setOutput},

		// Switches, separated by commas:
		{"SCHEDRESTD_SECURITY", o.setSwitches},

		// With
		// .Cm off
		// the gateway does not serve the page
		// .Pa /status .
		// The default is
		// .Cm on .
		// # Don't serve the pages for browsers: the status page at /status, and the API page at /docs.
		// #SCHEDRESTD_STATUS=off
		// #SCHEDRESTD_DOCS=off
		{"SCHEDRESTD_STATUS", word(&s.Status, "on", "on", "off")},

		// With
		// .Li TLSType=tls/s2n
		// the gateway accepts every certificate of the cluster's CA from a daemon, as
		// Slurm's commands do.
		// With
		// .Cm check
		// the certificate must also contain the name or the address of the daemon's
		// machine in the configuration.
		// The default is
		// .Cm ignore .
		{"SCHEDRESTD_TLS_NAMES", word(&s.TLS.CheckNames, "check", "check", "ignore")},

		// A value that the claim
		// .Li aud
		// of the tokens of an identity provider
		// .Pq Li jwks=
		// must have.
		// Other tokens get 401.
		// Without this variable the gateway accepts those that the provider made for other
		// applications.
		// # Tokens of the identity provider must be from this realm, and for this client.
		// #SCHEDRESTD_TOKEN_ISSUER=https://id.example.org/realms/hpc
		// #SCHEDRESTD_TOKEN_AUDIENCE=sched
		{"SCHEDRESTD_TOKEN_AUDIENCE", claim(&s.Audience)},

		// The claim
		// .Li iss
		// that the tokens of an identity provider must have.
		{"SCHEDRESTD_TOKEN_ISSUER", claim(&s.Issuer)},

		// For how long a gateway token may be valid that a client creates over the REST
		// API, such as
		// .Cm 720h ;
		// at most
		// .Cm 8784h ,
		// which are 366 days.
		// Without this variable it ends with the token with which the client creates it, so
		// that it does not outlive what the controller permits its user.
		// It needs
		// .Li disable_token_creation ,
		// as otherwise an attacker who controls a worker could get a token of the user from
		// the controller in exchange for what the daemons get in place of a gateway token.
		// With it, an attacker who sees a token of a user can create one that is valid for
		// this time; revoke the user's tokens then.
		{"SCHEDRESTD_TOKEN_LIFETIME", duration(&s.TokenLifetime, time.Second, 366*24*time.Hour, "720h")},

		// What the daemons get in place of a gateway token.
		// With
		// .Cm bearer
		// it is a token of the cluster, which is valid for half a minute.
		// With
		// .Cm bound
		// it is a credential of MUNGE or auth/slurm for one message, which a process with the
		// uid of the token's user gets from munged or sackd on this machine, if the keeper
		// permits it.
		// Then the scopes hold even against an attacker who controls a worker: see
		// .Sx GATEWAY TOKENS .
		// This needs a gateway that root starts with
		// .Fl u ,
		// and works for users of this machine with a uid of
		// .Ev SCHEDRESTD_MIN_UID
		// or more.
		// With
		// .Cm signed
		// the keeper itself signs this credential with the key of auth/slurm, for which no
		// root is needed.
		// The default is
		// .Cm bearer .
		// A reload does not change it.
		// # The scopes of gateway tokens hold even if a worker is captured.
		// #SCHEDRESTD_TOKEN_MODE=bound
		{"SCHEDRESTD_TOKEN_MODE", oneOf(&o.TokenMode, "bearer", "bound", "signed")},

		// The register of gateway tokens: a file that says which of them are revoked.
		// With this variable the gateway accepts the tokens that
		// .Cm schedctl token create
		// makes: see
		// .Sx GATEWAY TOKENS .
		// # Accept gateway tokens, which have scopes and can be revoked.
		// #SCHEDRESTD_TOKEN_REGISTER=/etc/sched/register/tokens
		{"SCHEDRESTD_TOKEN_REGISTER", o.setRegister},

		// The claim of an identity provider's token that lists its scopes, such as
		// .Li scope
		// or
		// .Li scp .
		// The token then permits only the operations of these
		// .Sx SCOPES ,
		// and without the claim none; others get 403.
		// Words that are not scopes of the gateway have no meaning.
		// The controller and slurmdbd do not know scopes: a client that reaches them can use the
		// token for everything.
		{"SCHEDRESTD_TOKEN_SCOPE_CLAIM", claim(&s.ScopeClaim)},

		// Addresses and networks of proxies that forward requests of other clients,
		// separated by commas.
		// .Cm unix: Ns Ar user
		// is a proxy that connects to a local socket as this user, by name or number.
		// Proxies get no penalties, and
		// .Fl -max-per-source
		// does not limit them.
		// The client of such a proxy is the last address in
		// .Li X-Forwarded-For
		// that is not a trusted proxy.
		// These clients get penalties for 401 only, and each worker counts their offences
		// separately.
		{"SCHEDRESTD_TRUSTED_PROXIES", o.setProxies},

		// What happens to a request with a genuine token if this machine does not know the
		// user as whom it is to be carried out.
		// .Bl -tag -width Ds
		// .It Cm refuse
		// The answer is 401, and the log has the reason.
		// This is the default, because some releases of Slurm's daemons serve all users
		// that they do not know as one, with uid 99.
		// .It Cm controller
		// The daemons decide.
		// It is for a machine that does not know the cluster's users, such as a container.
		// .El
		// .Pp
		// The gateway looks users up in
		// .Pa /etc/passwd ,
		// and then with
		// .Xr getent 1 .
		// A new user is known within half a minute, and a deleted one refused within a
		// minute.
		// If the directory service does not answer, users that were known in the last hour
		// stay known, and requests of others get 503.
		// A user with uid 99 or 65534 is always refused.
		// With
		// .Li use_jwt_client_ids
		// or
		// .Li use_jwt_client_ids_only
		// in
		// .Li AuthAltParameters= ,
		// so is a token with the claims
		// .Li uid ,
		// .Li gid
		// and
		// .Li id
		// whose uid is not that of the account on this machine, if the machine knows the
		// user.
		{"SCHEDRESTD_UNKNOWN_USERS", word(&s.PassUnknown, "controller", "refuse", "controller")},

		// How often a worker asks the controller whether a list has changed, for all the
		// clients with the same token or local user that wait for changes of this list, or
		// follow them.
		// It is a time of
		// .Cm 100ms
		// to
		// .Cm 1m ,
		// and
		// .Cm 1s
		// by default.
		// If the controller takes long to answer, or nothing changes for minutes, the worker
		// asks less often.
		// The output of a job that a client follows is looked at four times in this time, and once
		// when it has not grown for eight times as long.
		{"SCHEDRESTD_WATCH_INTERVAL", duration(&s.WatchInterval, 100*time.Millisecond, time.Minute, "1s")},

		// The time zone of times in requests that contain no time zone.
		// The value is a name in
		// .Pa /usr/share/zoneinfo
		// such as
		// .Li America/New_York ,
		// the absolute path of a file in its format, or a POSIX string such as
		// .Li EST5EDT,M3.2.0,M11.1.0 .
		// A name or path may follow a colon.
		// With any other value the gateway does not start.
		// An empty value stands for UTC.
		// If
		// .Ev TZ
		// is not set, the gateway uses
		// .Pa /etc/localtime .
		// After a SIGHUP the gateway reads the file again.
		// .Pp
		// When summer time begins, the clock skips an hour.
		// A skipped time has the offset from UTC before the change: if the clock is set
		// from 2:00 to 3:00, 2:30 means 3:30.
		// When summer time ends, an hour occurs twice.
		// A time in this hour is the first of the two.
		{"TZ", ignore}, // zone.Environment reads it

		// The spelling of paths, headers and fields that the gateway serves:
		// .Cm sched , slurm
		// or
		// .Cm both .
		// The default is
		// .Cm both
		// if the configuration is in Slurm's spelling, and
		// .Cm sched
		// otherwise.
		{"SCHEDRESTD_NAMES", text(&o.Names)},
	}
}
