// The menu of versions: what `versions.js`, in the folder above this version's, lists. Opened as a file, it works too.
"use strict";
(() => {
  const menus = document.querySelectorAll(".versions");
  if (!menus.length) return;
  const { root, version } = menus[0].dataset, list = document.createElement("script");
  list.src = `${root}../versions.js`;
  list.onload = () => {
    for (const menu of menus) {
      menu.querySelector("ul").replaceChildren(...window.dpestimVersions.map(({ name, title }) => {
        const line = document.createElement("li"), link = document.createElement("a");
        link.href = `${root}../${name}/index.html`;
        link.textContent = title;
        if (name === version) link.setAttribute("aria-current", "true");
        line.append(link);
        return line;
      }));
      menu.dataset.versions = window.dpestimVersions.length;
    }
  };
  document.head.append(list); // (where there is none, this version stays the only one in the menu)
})();
