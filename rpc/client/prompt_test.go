package client_test

import (
	"context"
	"testing"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/client"
)

// TestPromptTakesNoMemory checks that the answer to a Query with the option
// Prompt is read only as fast as its records are used. Until the last record has been
// used, the controller must still be sending the answer, the answer must use no
// memory of the budget, and further requests for lists must wait.
func TestPromptTakesNoMemory(t *testing.T) {
	t.Parallel()
	const jobs, size = 10_000, 64 << 20
	l := newLister(t, jobs)
	budget := client.NewBudget(size)
	c := client.New(client.Config{Controllers: []client.Address{l.Address}, Answers: budget, Timeout: 10 * time.Minute, ConnectTimeout: 10 * time.Minute})
	hold, held := make(chan struct{}), make(chan struct{}, client.MaxLongRequests+1)
	results := make(chan error, client.MaxLongRequests+1)
	count := func() {
		n := 0
		_, err := c.Jobs(context.Background(), ann, model.Query{Prompt: true}, func(*model.Job) error {
			if n++; n == 10 {
				held <- struct{}{}
				<-hold
			}
			return nil
		})
		if err == nil && n != jobs {
			t.Errorf("%d jobs", n)
		}
		results <- err
	}
	for range client.MaxLongRequests + 1 {
		go count()
	}
	for range client.MaxLongRequests {
		<-held
	}
	if free, open := budget.Free(), l.open.Load(); free != size || open != client.MaxLongRequests {
		t.Errorf("%d of %d bytes free, %d connections", free, size, open)
	}
	close(hold)
	for range client.MaxLongRequests + 1 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := l.lists.Load(); n != client.MaxLongRequests+1 {
		t.Errorf("%d lists", n)
	}
	if !budget.Reserve(model.Credential{Token: "bob"}).Grow(size/2) || !budget.Reserve(model.Credential{Token: "carol"}).Grow(size/8*3) {
		t.Fatal("no memory")
	}
	if _, err := c.Jobs(context.Background(), ann, model.Query{Prompt: true}, func(*model.Job) error { return nil }); err != nil {
		t.Errorf("without memory: %v", err)
	}
}
