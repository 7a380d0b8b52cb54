package muniment_test

import (
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// Each of the two has the methods that the contract's policy lets it call, and no other; and calls them as itself.
func TestHostsAndSessionsHaveTheirMethods(t *testing.T) {
	f := serve(t)
	conn := connect(t, f)
	for principal, caller := range map[munimentv1.Principal]struct {
		holder     reflect.Value
		credential string
	}{
		munimentv1.Principal_PRINCIPAL_HOST:    {reflect.ValueOf(hostOf(t, conn)), hostKey},
		munimentv1.Principal_PRINCIPAL_SESSION: {reflect.ValueOf(sessionOf(t, conn)), token},
	} {
		for _, method := range methods() {
			name := string(method.Name())
			policy := proto.GetExtension(method.Options(), munimentv1.E_Policy).(*munimentv1.MethodPolicy)
			has := caller.holder.MethodByName(name)
			if may := slices.Contains(policy.GetPrincipals(), principal); has.IsValid() != may {
				t.Errorf("%s: %v may: %v, has: %v", name, principal, may, has.IsValid())
			}
			if !has.IsValid() || method.IsStreamingClient() {
				continue
			}
			has.Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.ValueOf(newMessage(method.Input()))})
			calls := f.calls(name)
			if got := calls[len(calls)-1].authorization; !slices.Equal(got, []string{"Bearer " + caller.credential}) {
				t.Errorf("%s as %v: %q", name, principal, got)
			}
		}
	}
}
