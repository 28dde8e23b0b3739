// count.js tells Tidemark what is viewed on a site's pages:
//
//   <script defer src="https://host/count.js"></script>
//
// Settings are attributes of that element:
//   data-item     what is viewed; else the path of the page
//   data-type     the type of the events; else the server's
//   data-user     who views, as the site knows them; else a random ID kept in this browser
//   data-visitor  "none": no ID is kept; then there are views and no viewers
//   data-signals  where the browser says Do Not Track or Global Privacy Control:
//                 "anonymous" (the default: as data-visitor="none"), "silent" (nothing is sent), "ignore"
//   data-key      a key that may send
(() => {
  const script = document.currentScript as HTMLScriptElement;
  const { type, user, visitor, signals = "anonymous", key } = script.dataset;
  const nav = navigator as Navigator & { globalPrivacyControl?: boolean };
  const asked = signals !== "ignore" && (nav.doNotTrack === "1" || !!nav.globalPrivacyControl);
  if (asked && signals === "silent") return;
  const to = new URL("v1/events", script.src).href;
  const uuid = () => {
    // randomUUID is there on secure pages alone.
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
  };
  const who = () => {
    if (asked || user || visitor === "none") return asked ? undefined : user;
    try {
      return (localStorage["tidemark"] ||= uuid()) as string;
    } catch {
      return undefined; // storage is forbidden
    }
  };
  let last: string | undefined;
  let referrer = document.referrer;
  const view = () => {
    // Nobody sees a page that is in the background, or loaded in advance.
    if (document.visibilityState !== "visible") return;
    const item = script.dataset["item"] || location.pathname;
    if (item === last) return;
    last = item;
    const event = JSON.stringify({ id: uuid(), item, type, user: who(), title: document.title, url: location.href.split("#")[0], referrer: referrer || undefined, user_agent: nav.userAgent });
    referrer = "";
    // As text: then the browser need not ask first whether it may send it. A beacon
    // carries no key. What cannot be sent, such as to a server that is away, is lost.
    if (key || !nav.sendBeacon?.(to, event)) fetch(to, { method: "POST", body: event, keepalive: true, ...(key ? { headers: { Authorization: "Bearer " + key } } : {}) }).catch(() => {});
  };
  // A page that changes its address counts again, once its title is there.
  const later = () => setTimeout(view, 100);
  for (const name of ["pushState", "replaceState"] as const) {
    const real = history[name];
    history[name] = function (...args) {
      real.apply(this, args);
      later();
    };
  }
  addEventListener("popstate", later);
  addEventListener("pageshow", (e) => {
    if (!e.persisted) return;
    last = undefined; // back again
    view();
  });
  document.addEventListener("visibilitychange", view);
  view();
})();
