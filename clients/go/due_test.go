package muniment

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

func TestASessionIsDueWhenAQuarterOfItsTimeIsLeft(t *testing.T) {
	begun, opened := time.Now(), time.Unix(1000, 0)
	held, err := holdSession(&munimentv1.OpenSessionResponse{Token: "t", Session: &munimentv1.Session{
		CreateTime: timestamppb.New(opened),
		ExpireTime: timestamppb.New(opened.Add(time.Hour)),
	}}, begun)
	if err != nil || !held.due.Equal(begun.Add(45*time.Minute)) {
		t.Error(held.due.Sub(begun), err)
	}
}
