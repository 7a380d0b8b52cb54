// Browsers start no worker for a page that is read from a disk. There, search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.body.appendChild(document.createElement("iframe"));
      frame.hidden = true;
      this.scope = frame.contentWindow;
      this.scope.document.write("<body></body>");
      this.scope.document.close();
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.started = new Promise((resolve, reject) => {
        const script = this.scope.document.createElement("script");
        Object.assign(script, { src: url, onload: resolve, onerror: reject });
        this.scope.document.body.appendChild(script);
      });
    }

    postMessage(data) {
      this.started.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
