package muniment_test

import (
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	muniment "muniment/clients/go"
	munimentv1 "muniment/clients/go/gen/muniment/v1"
)

// Each of the two has the methods that the contract's policy lets it call, and no other.
func TestHostsAndSessionsHaveTheirMethods(t *testing.T) {
	holders := map[munimentv1.Principal]reflect.Type{
		munimentv1.Principal_PRINCIPAL_HOST:    reflect.TypeFor[*muniment.Host](),
		munimentv1.Principal_PRINCIPAL_SESSION: reflect.TypeFor[*muniment.Session](),
	}
	for full, method := range methods() {
		policy := proto.GetExtension(method.Options(), munimentv1.E_Policy).(*munimentv1.MethodPolicy)
		for principal, holder := range holders {
			_, has := holder.MethodByName(string(method.Name()))
			if may := slices.Contains(policy.GetPrincipals(), principal); has != may {
				t.Errorf("%s: %v may: %v, %v has: %v", full, principal, may, holder, has)
			}
		}
	}
}
