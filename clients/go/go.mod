// Muniment has no public home yet, and a module path without a dot could be served by no proxy. A name below .example is
// reserved (RFC 2606): it is valid, nobody can register it and serve other code by it, and a proxy of your own can serve
// the module, as one made of files does in the tests. Below the name is the folder in the repository, so that a home of
// that name would find the module and its tags, clients/go/v0.2.0. The contract's go_package follows it.
module muniment.example/clients/go

go 1.25.0

require (
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260825221802-da73d73af1c5
	google.golang.org/grpc v1.83.2
	google.golang.org/protobuf v1.36.12
)

require (
	golang.org/x/net v0.58.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)
