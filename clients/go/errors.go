package muniment

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

const (
	// domain is that of the reasons of the contract.
	domain = "muniment.v1"
	// requestID is the trailer with the id of the call.
	requestID = "request-id"
)

// An Error is a call that failed. Its reason says why, [Detail] what the server says beside it.
type Error struct {
	// Code is the status of gRPC.
	Code codes.Code
	// Reason is that of the contract, by which to act. It is ERROR_REASON_UNSPECIFIED when the answer does not come from
	// Muniment itself, and for a reason that is newer than this client.
	Reason munimentv1.ErrorReason
	// ReasonName is the reason as the server names it, such as ETAG_STALE, also if it is newer than this client. It is
	// empty when the answer does not come from Muniment itself.
	ReasonName string
	// Message is for people and may change.
	Message string
	// RequestID identifies the call in the server's log; after retries, the last attempt. It is empty when no server
	// answered.
	RequestID string

	status *status.Status
}

// Error is the reason, or else the code, and the message, with the fields that break a rule, the numbers of a budget,
// the taint of a conversation, the name of a quota, what an import has stored, the time to retry, and the request id.
func (e *Error) Error() string {
	what := e.ReasonName
	if what == "" {
		what = e.Code.String()
	}
	text := fmt.Sprintf("muniment: %s: %s", what, e.Message)
	if facts := e.facts(); len(facts) > 0 {
		text += " (" + strings.Join(facts, "; ") + ")"
	}
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// facts are what the details say in few words, and never what is stored.
func (e *Error) facts() (facts []string) {
	for _, detail := range e.status.Details() {
		switch detail := detail.(type) {
		case *errdetails.BadRequest:
			for _, violation := range detail.GetFieldViolations() {
				facts = append(facts, violation.GetField()+": "+violation.GetDescription())
			}
		case *munimentv1.BudgetExceeded:
			facts = append(facts, fmt.Sprintf("over by %d characters: %d of %d",
				detail.GetOverByChars(), detail.GetWouldBeChars(), detail.GetUsage().GetLimitChars()))
		case *munimentv1.ConversationTainted:
			facts = append(facts, "the taint is "+strings.TrimPrefix(detail.GetTaint().String(), "CLASSIFICATION_"))
		case *munimentv1.ImportProgress:
			facts = append(facts, fmt.Sprintf("%d passages stored, %d already there",
				detail.GetStoredCount(), detail.GetExistingCount()))
		case *errdetails.RetryInfo:
			facts = append(facts, fmt.Sprintf("retry after %v", detail.GetRetryDelay().AsDuration()))
		case *errdetails.ErrorInfo:
			if quota := detail.GetMetadata()["quota"]; quota != "" {
				facts = append(facts, "quota: "+quota)
			}
		}
	}
	return facts
}

// Is reports whether the call failed for the same reason as a context would: errors.Is(err, context.DeadlineExceeded),
// and likewise context.Canceled.
func (e *Error) Is(target error) bool {
	return target == context.DeadlineExceeded && e.Code == codes.DeadlineExceeded ||
		target == context.Canceled && e.Code == codes.Canceled
}

// GRPCStatus is the status that came, for [status.FromError] and [status.Code].
func (e *Error) GRPCStatus() *status.Status {
	return e.status
}

// ReasonOf is the [Error.Reason] of a call that failed. It is ERROR_REASON_UNSPECIFIED for nil and other errors.
func ReasonOf(err error) munimentv1.ErrorReason {
	var failure *Error
	if !errors.As(err, &failure) {
		return munimentv1.ErrorReason_ERROR_REASON_UNSPECIFIED
	}
	return failure.Reason
}

// credentialExpired is the reason of calls that were refused because the credential's time has passed.
const credentialExpired = "CREDENTIAL_EXPIRED"

// reasonName is the reason for which a call failed, also one that is newer than this client.
func reasonName(err error) string {
	var failure *Error
	if !errors.As(err, &failure) {
		return ""
	}
	return failure.ReasonName
}

// Detail is the first detail of one kind that came with an error, if there is one.
//
// The server sends BudgetExceeded, ConversationTainted and ImportProgress of the contract, and of google.rpc (package
// errdetails) BadRequest with the fields that break a rule, RetryInfo, and ErrorInfo.
func Detail[T proto.Message](err error) (detail T, found bool) {
	for _, each := range status.Convert(err).Details() {
		if detail, found = each.(T); found {
			return detail, true
		}
	}
	return detail, false
}

// brokenOff is the error of a call that nobody here canceled. If it is canceled all the same, the server broke it off,
// as it does when it stops.
func brokenOff(err error) error {
	if status.Code(err) != codes.Canceled {
		return err
	}
	return status.Error(codes.Unavailable, status.Convert(err).Message())
}

// unsendable is the error of a request that could not be written, which gRPC calls an internal one: the caller's text is
// the cause. Others are as they were.
func unsendable(err error, request any) error {
	message, ok := request.(proto.Message)
	if !ok || status.Code(err) != codes.Internal {
		return err
	}
	if _, failed := proto.Marshal(message); failed == nil {
		return err
	}
	return status.Error(codes.InvalidArgument, "a text is not valid UTF-8, and cannot be sent")
}

// errorOf is the error that a failed call stands for, with the trailers that came. What has no status, such as io.EOF,
// is itself.
func errorOf(err error, trailers metadata.MD) error {
	failed, ok := status.FromError(err)
	if !ok || failed == nil {
		return err
	}
	failure := &Error{Code: failed.Code(), Message: withoutWrapping(failed.Message()), status: failed}
	if info, found := Detail[*errdetails.ErrorInfo](failure); found && info.GetDomain() == domain {
		failure.ReasonName = info.GetReason()
		failure.Reason = munimentv1.ErrorReason(munimentv1.ErrorReason_value["ERROR_REASON_"+failure.ReasonName])
		// A server of version 0.1.0 names faults alone.
		failure.RequestID = info.GetMetadata()["incident"]
	}
	if sent := trailers.Get(requestID); len(sent) > 0 {
		failure.RequestID = sent[0]
	}
	return failure
}
