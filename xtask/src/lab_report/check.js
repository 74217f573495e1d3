(() => {
  const wrong = [];
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) wrong.push(`the page is ${root.scrollWidth} wide in a window of ${innerWidth}`);
  if (document.scripts.length) wrong.push(`${document.scripts.length} scripts`);
  for (const loaded of performance.getEntriesByType("resource"))
    if (!loaded.name.startsWith("data:")) wrong.push(`loads ${loaded.name}`);
  for (const link of document.querySelectorAll('a[href^="#"]'))
    if (!document.getElementById(link.hash.slice(1))) wrong.push(`${link.hash} leads nowhere`);
  const names = [...document.querySelectorAll("[id]")].map(one => one.id);
  names.filter((name, place) => names.indexOf(name) < place).forEach(name => wrong.push(`two elements are named ${name}`));
  if (!document.querySelector("figure")) wrong.push("no figures");
  for (const figure of document.querySelectorAll("figure")) {
    const box = figure.getBoundingClientRect();
    const drawing = figure.querySelector(":scope > svg");
    const drawn = drawing?.getBoundingClientRect();
    if (box.width < 100 || box.height < 20 || (drawn && (drawn.width < 100 || drawn.height < 40))) wrong.push(`${figure.id} has no size`);
    if (!drawing) continue;
    const { width, height } = drawing.viewBox.baseVal;
    const texts = [...drawing.querySelectorAll("text")].map(text => {
      const box = text.getBBox();
      return { says: text.textContent, left: box.x, right: box.x + box.width, top: box.y, bottom: box.y + box.height };
    });
    texts.forEach((one, place) => {
      if (one.left < -1 || one.right > width + 1 || one.top < -2 || one.bottom > height + 2) wrong.push(`${figure.id}: "${one.says}" is cut off`);
      for (const other of texts.slice(0, place)) {
        const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
        const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
        // Lines of text may touch: letters do not fill their line.
        if (across > 1 && down > 4) wrong.push(`${figure.id}: "${one.says}" and "${other.says}" are written over each other`);
      }
    });
  }
  return wrong;
})()
