package muniment;

import java.util.Map;

/** Where the server is and who calls, when the program does not say. */
record Settings(String address, String credential) {
  static final String HOST_KEY = "MUNIMENT_HOST_KEY";
  static final String TOKEN = "MUNIMENT_TOKEN";
  private static final String ADDRESS = "MUNIMENT_ADDRESS";

  /** The address, and the credential that one variable holds. Both are needed. */
  static Settings find(Map<String, String> environment, String credential) {
    return new Settings(required(environment, ADDRESS), required(environment, credential));
  }

  private static String required(Map<String, String> environment, String name) {
    String value = environment.getOrDefault(name, "").strip();
    if (value.isEmpty()) {
      throw new IllegalStateException("no server is named: " + name + " is not set");
    }
    return value;
  }
}
