package muniment;

/** How {@link Pages#all} reads a list. */
public enum ListOption {
  /**
   * The list is read again from its first page, at most four times, if the taint is raised between
   * two pages. It may then hold what is above the taint that the call began at.
   *
   * <p>Without this option the call fails with {@code ERROR_REASON_TAINT_CHANGED}.
   */
  RESTART_ON_TAINT_CHANGE
}
