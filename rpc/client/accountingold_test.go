package client_test

import (
	"context"
	"net"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// TestAccountingOf2205 checks an accounting daemon of Slurm 22.05. This daemon
// refuses an invalid token with the same error as an unsupported protocol
// version. The client must report a forged token as unauthenticated, whether or
// not it knows the daemon's version.
func TestAccountingOf2205(t *testing.T) {
	t.Parallel()
	address := sockettest.Serve(t, "tcp", func(nc net.Conn) {
		b, err := wire.Read(nc, 1<<20)
		if err != nil {
			return
		}
		f, _ := message.ParseFrame(b[2:])
		rc := &message.PersistRC{}
		if f.Header.Version > codec.V2205 || f.Credential.Token != ann.Token {
			rc = &message.PersistRC{Comment: "no", Code: 1<<32 - 1, Info: 6500}
		}
		answer, _ := message.EncodePersistent(f.Header.Version, message.AccountingRC, rc)
		nc.Write(answer)
	})
	c := client.NewAccounting(client.Config{Accounting: []client.Address{{Name: "dbd", Network: "tcp", Address: address}}})
	forged := model.Credential{Token: ann.Token + "x"}
	if err := c.Verify(context.Background(), forged); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("forged, while its version is not known: %v", err)
	}
	if err := c.Verify(context.Background(), ann); err != nil {
		t.Errorf("good: %v", err)
	}
	if err := c.Verify(context.Background(), forged); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("forged: %v", err)
	}
}
