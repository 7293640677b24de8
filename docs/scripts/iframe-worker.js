// Browsers refuse workers to pages from the file system. There, a worker is a script in a hidden frame of the page:
// messages are events of the two, and the search of the site works without a server and without the network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.worker = this;
      this.frame.srcdoc = `<script>
        const worker = frameElement.worker;
        self.postMessage = (data) => {
          const event = new MessageEvent("message", { data });
          worker.dispatchEvent(event);
          if (worker.onmessage) worker.onmessage(event);
        };
        self.importScripts = (...urls) => Promise.all(urls.map((src) => new Promise((done, failed) => {
          document.head.append(Object.assign(document.createElement("script"), { src, onload: done, onerror: failed }));
        })));
      </script><script src="${new URL(url, location.href)}"></script>`;
      this.ready = new Promise((done) => this.frame.addEventListener("load", done));
      document.documentElement.append(this.frame);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
