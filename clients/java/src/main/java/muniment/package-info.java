/**
 * The Java client of Muniment: memory for AI agents that keeps to information-flow levels.
 *
 * <p>{@link muniment.HostClient} is for the holder of a host key, {@link muniment.SessionClient}
 * for a session's token. Their methods are the contract's: each takes a function that fills in the
 * request, and gives the response, or throws {@link muniment.MunimentException}. The messages are
 * in {@code muniment.v1}.
 */
package muniment;
