package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// TestLimits requests limits and parts of priorities at each protocol version.
func TestLimits(t *testing.T) {
	t.Parallel()
	for v := codec.Oldest; v <= codec.Newest; v++ {
		t.Run(v.Release(), func(t *testing.T) {
			s := controller()
			s.Newest = v
			s.Handlers[message.RequestLimits] = decoded(message.ResponseLimits, func(r *message.LimitsRequest) (message.Body, error) {
				answer := &message.Limits{TRESNames: []string{"cpu"}}
				if r.Flags&message.LimitsAssociations != 0 {
					answer.Associations.List = []model.AssocLimits{{Association: model.Association{ID: 3, User: strings.Join(r.Users, "+")}, TRES: []model.Opt[uint64]{model.Some[uint64](7)}}}
				}
				if r.Flags&message.LimitsQOS != 0 {
					answer.QOS.List = []model.QOSLimits{{QOS: model.QOS{Name: strings.Join(r.QOS, "+")}, Usage: model.QOSUsage{Jobs: 9}}}
				}
				return answer, nil
			})
			c := client.New(client.Config{Controllers: []client.Address{serve(t, "tcp", s)}})
			ctx, stop := context.Background(), errors.New("stop")
			for _, tt := range []struct {
				q           model.LimitsQuery
				user, named string
			}{
				{model.LimitsQuery{Associations: true, Users: []string{"ann", "bob"}}, "ann+bob", ""},
				{model.LimitsQuery{QOS: []string{"normal"}}, "", "normal"},
				{model.LimitsQuery{Associations: true, Users: []string{"ann"}, QOS: []string{"a", "b"}}, "ann", "a+b"},
			} {
				user, named := "", ""
				err := c.Limits(ctx, ann, tt.q, func(tres []string, a *model.AssocLimits) error {
					if len(tres) != 1 || tres[0] != "cpu" || len(a.TRES) != 1 || a.TRES[0].Number != 7 {
						t.Errorf("%q: %+v", tres, a)
					}
					user = a.User
					return nil
				}, func(tres []string, l *model.QOSLimits) error {
					if len(tres) != 1 || l.Usage.Jobs != 9 {
						t.Errorf("%q: %+v", tres, l)
					}
					named = l.Name
					return nil
				})
				if err != nil || user != tt.user || named != tt.named {
					t.Errorf("%+v: user %q, QOS %q, %v", tt.q, user, named, err)
				}
			}
			if err := c.Limits(ctx, ann, model.LimitsQuery{Associations: true}, func([]string, *model.AssocLimits) error { return stop }, nil); err != stop {
				t.Errorf("Limits, stopped: %v", err)
			}
		})
	}
}
