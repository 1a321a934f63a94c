"use strict";
// Everything shown comes from other processes: it is put on the page as text, never as HTML, and with what is not printable escaped.
(() => {
  const maxEvents = 200, refetchAfter = 500, refreshEvery = 5000, retryAfter = 10000;
  const $ = (id) => document.getElementById(id);
  let view = null;      // the newest View
  let offset = 0;       // the daemon's clock less ours, in milliseconds
  let timer = 0;        // of the next fetch
  let fetching = false;
  let again = false;
  let cni = null;       // the newest answer to v1/cni; null: to be asked for
  let cniText = "";     // of what is shown of it
  const rows = new Map(); // path → {tr, text}

  // Control characters, marks that turn text around, lone surrogates, blanks that are not blank: as \u{…}.
  const hidden = /[\p{C}\p{Zl}\p{Zp}\uFFFD]|(?! )\p{Zs}/gu;
  const plain = (text) => String(text ?? "").replace(hidden, (c) => "\\u{" + c.codePointAt(0).toString(16) + "}");

  // The bytes of a path that is not UTF-8.
  function path(object, field) {
    const base64 = object[field + "_base64"];
    if (!base64) return plain(object[field]);
    return Array.from(atob(base64), (c) => (c >= " " && c <= "~") ? c : "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0")).join("");
  }

  function element(name, text, classes) {
    const e = document.createElement(name);
    if (text) e.textContent = text;
    if (classes) e.className = classes;
    return e;
  }

  // A text of unknown direction stays in its own place.
  function own(text, classes) { return element("bdi", text, classes); }

  function span(seconds) {
    const s = Math.max(0, seconds);
    if (s < 120) return Math.floor(s) + " s";
    if (s < 7200) return Math.floor(s / 60) + " min";
    if (s < 172800) return Math.floor(s / 3600) + " h";
    return Math.floor(s / 86400) + " days";
  }
  const seconds = (time) => (Date.now() + offset - Date.parse(time)) / 1000;

  const levels = {
    registered: "good", observed: "good", standby: "good", backoff: "bad", rejected: "bad", unreachable: "bad",
    pending: "warn", registering: "warn", deregistering: "warn", ignored: "",
  };

  // As trouble in status.go.
  function needsAttention(s) {
    return ["backoff", "rejected", "unreachable"].includes(s.phase) || Boolean(s.call && s.call.parked) || Boolean(s.stale) ||
      s.acknowledged === "no" || Boolean(s.report && s.report.health === "down");
  }

  function reason(s) {
    if (s.last_error) return plain(s.last_error);
    if (s.call && s.call.parked) return "its handler has been at " + plain(s.call.verb) + " since " + plain(s.call.since);
    if (s.holder) return "held by " + path(s, "holder");
    if (s.stale) return plain(s.stale.error);
    if (s.acknowledged === "no") return "could not be told that it is registered";
    return "";
  }

  function cell(label, content, classes) {
    const td = element("td", "", classes);
    td.dataset.label = label;
    for (const c of [content].flat()) if (c) td.append(c);
    return td;
  }

  function times(td, time, future) {
    if (time) td.dataset[future ? "until" : "since"] = time;
    return td;
  }

  function socketRow(s) {
    const tr = element("tr");
    const p = s.plugin;
    const told = s.report ? plain(s.report.health) + (s.report.message ? ": " + plain(s.report.message) : "") : "";
    const detail = s.report && s.report.detail !== undefined ? plain(JSON.stringify(s.report.detail)) : "";
    const phase = cell("Phase", plain(s.phase), "phase " + (levels[s.phase] ?? ""));
    if (s.call && s.call.parked) phase.append(element("small", "handler hangs"));
    if (s.stale) phase.append(element("small", "stale"));
    tr.append(
      phase,
      cell("Plugin", p ? [own(plain(p.name)), element("small", plain(p.type) + " " + plain((p.versions || []).join(", ")))] : "not known", "plugin"),
      cell("Socket", own(path(s, "path"), "path")),
      times(cell("Since", "", "span"), s.since),
      times(cell("Next try", "", "span"), s.next_try, true),
      cell("Reason", reason(s) && own(reason(s)), "reason"),
      cell("Handler says", [told && own(told, s.report.health === "down" ? "bad" : ""), detail && element("small", detail)]),
    );
    return tr;
  }

  function rootRow(r) {
    const tr = element("tr");
    const ignored = r.ignored || [];
    const count = ignored.reduce((n, g) => n + g.count, 0);
    const last = cell("Last good scan", r.last_good_scan ? "" : "never", "span");
    const examples = ignored.map((g) => plain(g.reason) + ": " + g.examples.map(plain).join(", ") + (g.count > g.examples.length ? " …" : "")).join("; ");
    tr.append(
      cell("Directory", own(path(r, "path"), "path")),
      times(last, r.last_good_scan),
      cell("Sockets", String(r.entries)),
      cell("Ignored", count ? [String(count), element("small", examples)] : "0"),
      cell("Error", r.error ? own(plain(r.error)) : "", r.error ? "error" : ""),
    );
    return tr;
  }

  const cniLevels = { ready: "good", stale: "warn", loading: "warn", "not ready": "bad" };
  const fileLevels = { used: "good", broken: "bad", duplicate: "warn" };

  // What a file says of itself, of a length that leaves room for the rest.
  function brief(text) {
    const letters = [...plain(text)];
    return letters.length > 80 ? letters.slice(0, 80).join("") + "…" : letters.join("");
  }

  function place(e) { return e.line ? "line " + e.line + ", column " + e.column + ": " : ""; }

  function fileRow(f) {
    const tr = element("tr");
    const why = [f.reason && own(plain(f.reason))];
    if (f.error) why.push(own(place(f.error) + plain(f.error.text), "error"), element("small", "To mend it: " + plain(f.error.fix)));
    tr.append(
      cell("File is", plain(f.state), "phase " + (fileLevels[f.state] ?? "")),
      cell("File", own(path(f, "path"), "path")),
      cell("Network", [f.network && own(brief(f.network)), f.cni_version && element("small", brief(f.cni_version))], "plugin"),
      cell("Plugins", f.plugins && own(brief(f.plugins.join(", ")))),
      cell("Why", why, "reason"),
    );
    return tr;
  }

  // What is of the networks; those whose files are gone are kept.
  function networksAre(d) {
    if (d.ready) return "In use: ";
    const used = new Set(d.files.filter((f) => f.state === "used").map((f) => path(f, "path")));
    return d.networks.some((n) => used.has(path(n, "file"))) ? "Loaded: " : "Kept for pods that run: ";
  }

  function network(n, are) {
    const p = element("p", are);
    p.append(own(brief(n.name)), " as ", own(brief(n.interface)), ", plugins ", own(brief(n.plugins.map((x) => x.type).join(", "))));
    for (const x of n.plugins) {
      if (x.missing) p.append(element("small", plain(x.missing), "bad"));
      if (x.ipam_missing) p.append(element("small", plain(x.ipam_missing), "warn"));
    }
    return p;
  }

  function cniAttention(d) {
    return d.state !== "ready" || d.scan_error || d.files.some((f) => f.state === "broken") || d.networks.some((n) => n.plugins.some((x) => x.ipam_missing));
  }

  // One CNI directory: its state, the networks in use, a verdict on each file.
  function directory(d) {
    const div = element("div", "", "cni");
    const h = element("h3");
    h.append(element("b", plain(d.state), "phase " + (cniLevels[d.state] ?? "")), own(path(d, "conf_dir"), "path"), d.name ? " of the runtime handler " : "");
    if (d.name) h.append(own(plain(d.name)));
    const error = d.message || d.last_error || d.scan_error;
    div.append(h);
    if (error) div.append(element("p", plain(error), d.ready ? "warn" : "bad"));
    div.append(...d.networks.map((n) => network(n, networksAre(d))));
    if (d.files.length) {
      const table = element("table"), head = element("tr");
      for (const title of ["File is", "File", "Network", "Plugins", "Why"]) {
        const th = element("th", title);
        th.scope = "col";
        head.append(th);
      }
      table.createTHead().append(head);
      table.createTBody().append(...d.files.map(fileRow));
      div.append(table);
    }
    return div;
  }

  function showCNI(answer) {
    cni = answer;
    const text = JSON.stringify(answer.directories.map((d) => [d.name, d.conf_dir, d.state, d.message, d.last_error, d.scan_error, d.networks, d.files]));
    if (text === cniText) return;
    cniText = text;
    $("cni").hidden = answer.directories.length === 0;
    for (const id of ["roots", "sockets"]) $(id).closest("section").hidden = answer.directories.length > 0 && view.roots.length === 0;
    $("networks").replaceChildren(...answer.directories.map(directory));
    counts();
  }

  function options(select, words, kept) {
    while (select.options.length > kept) select.remove(kept);
    const chosen = select.dataset.chosen || "";
    for (const w of words) {
      const o = element("option", plain(w));
      o.value = w;
      select.append(o);
    }
    select.value = [...select.options].some((o) => o.value === chosen) ? chosen : "";
  }

  // It counts the phases, and says what it has counted.
  function counts() {
    const phases = new Map();
    for (const s of view.sockets) phases.set(s.phase, (phases.get(s.phase) || 0) + 1);
    const attention = view.sockets.filter(needsAttention).length + view.roots.filter((r) => r.error || !r.last_good_scan).length +
      (cni ? cni.directories.filter(cniAttention).length : 0);
    const parts = [[...phases].map(([p, n]) => n + " " + plain(p)).join(", "), attention ? attention + (attention === 1 ? " needs" : " need") + " attention" : ""];
    $("counts").textContent = parts.filter(Boolean).join("; ");
    return phases;
  }

  function show() {
    $("roots").tBodies[0].replaceChildren(...view.roots.map(rootRow));
    options($("phase"), [...counts().keys()].sort(), 2);
    options($("type"), [...new Set(view.sockets.map((s) => s.plugin && s.plugin.type).filter(Boolean))].sort(), 1);
    const gone = new Set(rows.keys());
    for (const s of view.sockets) {
      const key = s.path_base64 || s.path, text = JSON.stringify(s);
      gone.delete(key);
      const row = rows.get(key);
      if (row && row.text === text) continue;
      const tr = socketRow(s);
      if (row) row.tr.replaceWith(tr);
      rows.set(key, { tr, text, s, words: tr.textContent.toLowerCase() });
    }
    for (const key of gone) {
      rows.get(key).tr.remove();
      rows.delete(key);
    }
    const body = $("sockets").tBodies[0];
    let at = body.firstElementChild;
    for (const s of view.sockets) { // in the View's order
      const tr = rows.get(s.path_base64 || s.path).tr;
      if (tr === at) at = at.nextElementSibling;
      else body.insertBefore(tr, at);
    }
    filter();
    ages();
  }

  function filter() {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean), phase = $("phase").value, type = $("type").value;
    let n = 0;
    for (const row of rows.values()) {
      const s = row.s;
      const fits = words.every((w) => row.words.includes(w)) && (!phase || (phase === "!" ? needsAttention(s) : s.phase === phase)) &&
        (!type || (s.plugin && s.plugin.type === type));
      row.tr.hidden = !fits;
      row.tr.style.display = fits ? "" : "none";
      if (fits) n++;
    }
    $("shown").textContent = n + " of " + rows.size;
    $("none").hidden = n > 0 || rows.size === 0;
  }

  function ages() {
    for (const td of document.querySelectorAll("[data-since]")) {
      const ago = td.closest("#roots") ? " ago" : "";
      td.textContent = span(seconds(td.dataset.since)) + ago;
    }
    for (const td of document.querySelectorAll("[data-until]")) {
      const left = -seconds(td.dataset.until);
      td.textContent = left > 0 ? "in " + span(left) : "now";
    }
  }

  function take(v) {
    view = v;
    offset = Date.parse(v.time) - Date.now();
    show();
  }

  async function refetch() {
    if (fetching) { again = true; return; }
    fetching = true;
    clearTimeout(timer);
    try {
      const answer = await fetch("v1/view");
      if (answer.ok) {
        take(await answer.json());
        if (view && (!cni || cni.directories.length)) { // a daemon keeps the directories it began with
          const networks = await fetch("v1/cni");
          if (networks.ok) showCNI(await networks.json());
        }
        if (stream.readyState === EventSource.CLOSED) live("wait", "no live events, too many read them; refreshed every 5 s");
      }
    } catch { /* the stream says that the daemon is away */ }
    fetching = false;
    timer = setTimeout(refetch, again ? refetchAfter : refreshEvery);
    again = false;
  }

  function soon() {
    if (fetching) { again = true; return; }
    if (!soon.planned) soon.planned = setTimeout(() => { soon.planned = 0; refetch(); }, refetchAfter);
  }

  function note(e) {
    const li = element("li");
    const time = element("time", new Date(e.time).toLocaleTimeString());
    time.dateTime = e.time;
    const bad = ["failing", "rejected", "unreachable", "not_acknowledged", "root_failing", "lost",
      "cni_rejected", "cni_empty", "cni_plugins_missing", "cni_status_failing", "cni_scan_failing", "cni_not_ready", "cni_lost"].includes(e.kind);
    li.append(time, element("b", plain(e.kind).replaceAll("_", " "), bad ? "bad" : ""));
    if (e.plugin) li.append(own(plain(e.plugin.name)));
    if (e.path || e.root) li.append(own(path(e, e.path ? "path" : "root"), "path"));
    if (e.conf_dir) li.append(own(path(e, "conf_dir"), "path"));
    if (e.network) li.append(own(plain(e.network)));
    const more = [e.lost && e.lost + " events are missing here", e.reason && plain(e.reason), e.error && plain(e.error), e.report && e.report.message && plain(e.report.message)];
    for (const m of more) if (m) li.append(own(m));
    const list = $("events");
    list.prepend(li);
    while (list.children.length > maxEvents) list.lastChild.remove();
    $("quiet").hidden = true;
  }

  function live(state, text) {
    $("live").className = state;
    $("live").textContent = text;
  }

  let stream = null;

  function listen() {
    stream = new EventSource("v1/events");
    stream.onopen = () => live("good", "live");
    stream.onerror = () => {
      live("bad", "the daemon does not answer; what is below is old");
      if (stream.readyState === EventSource.CLOSED) setTimeout(listen, retryAfter); // refused: the browser does not try again
    };
    stream.onmessage = (message) => {
      const e = JSON.parse(message.data);
      if (e.view) {
        cni = null; // another daemon may have others
        take(e.view);
        soon();
        return;
      }
      if (e.cni_view) return;
      note(e);
      soon();
    };
  }

  for (const id of ["phase", "type"]) $(id).addEventListener("change", (e) => { e.target.dataset.chosen = e.target.value; filter(); });
  $("search").addEventListener("input", filter);
  $("filter").addEventListener("submit", (e) => e.preventDefault());
  setInterval(ages, 1000);
  timer = setTimeout(refetch, 0);
  listen();
})();
